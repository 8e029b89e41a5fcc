"""The corpus: names of files, what is unpacked, which files count."""

import hashlib
import io
import tarfile
import tempfile
import unittest
import zipfile

import here  # noqa: F401
from parts import corpus
from parts.corpus import Corpus, files_under, is_closed
from parts.index import links, package_of

LOOP = b"import torch\nloss.backward()\n"


def source_archive(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def wheel(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


class Names(unittest.TestCase):
    def test_a_file_tells_its_package(self):
        self.assertEqual(package_of("timm-1.0.30.tar.gz"), "timm")
        self.assertEqual(package_of("backpack_for_pytorch-1.7.1.tar.gz"), "backpack-for-pytorch")
        self.assertEqual(package_of("pytorch-metric-learning-2.9.0.zip"), "pytorch-metric-learning")
        self.assertEqual(package_of("torch-2.9.0-cp312-none-macosx_11_0_arm64.whl"), "torch")

    def test_a_page_tells_where_files_are(self):
        page = (
            '<a href="https://there/a-1.tar.gz#sha256=00" data-requires-python="&gt;=3">a-1.tar.gz</a>\n'
            '<a data-yanked="" href="../../a-2.tar.gz#sha256=00">a-2.tar.gz</a>'
        )
        self.assertEqual(
            links(page, "https://here/simple/a/"),
            {"a-1.tar.gz": "https://there/a-1.tar.gz", "a-2.tar.gz": "https://here/a-2.tar.gz"},
        )

    def test_what_leaves_its_place_or_is_hidden_is_closed(self):
        for path in ("/a.py", "../a.py", "a/../b.py", "a/.mim/b.py", "build/a.py", "a//b.py"):
            self.assertTrue(is_closed(path), path)
        self.assertFalse(is_closed("examples/build.py"))


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.corpus = Corpus(folder.name)

    def test_of_a_wheel_all_python_is_taken(self):
        self.corpus.unpack("library", "a-1-py3-none-any.whl", wheel({"a/b.py": b"", "a/c.so": b""}))
        self.assertEqual(files_under(self.corpus.tree("library")), ["a/a/b.py"])

    def test_of_a_source_archive_training_code_is_taken(self):
        content = source_archive({
            "a-1/train.py": LOOP, "a-1/model.py": b"import torch\n", "a-1/tests/t.py": LOOP,
            "../evil.py": LOOP, "a-1/../../evil.py": LOOP,
        })
        self.corpus.unpack("training", "a-1.tar.gz", content)
        self.assertEqual(files_under(self.corpus.folder), ["training/a/evil.py", "training/a/train.py"])

    def test_the_same_content_counts_once_and_no_package_counts_too_often(self):
        self.corpus.unpack("training", "a-1.tar.gz", source_archive({"a-1/x.py": LOOP}))
        many = {f"b-1/{n}.py": LOOP + b"%d" % n for n in range(corpus.MOST_OF_ONE + 5)}
        self.corpus.unpack("training", "b-1.tar.gz", source_archive({**many, "b-1/x.py": LOOP}))
        files = self.corpus.training_files()
        self.assertEqual(files[0], "a/x.py")
        self.assertEqual(len(files), 1 + corpus.MOST_OF_ONE)
        self.assertNotIn("b/x.py", files)

    def test_a_package_that_is_no_longer_named_goes(self):
        self.corpus.unpack("training", "a-1.tar.gz", source_archive({"a-1/x.py": LOOP}))
        self.corpus.drop_strangers("training", {"b-1.tar.gz": ""})
        self.assertEqual(self.corpus.training_files(), [])


class Pins(unittest.TestCase):
    def test_every_file_has_a_checksum_and_every_package_one_file(self):
        for tree in Corpus("/nowhere").pins.values():
            self.assertEqual(len({package_of(file) for file in tree}), len(tree))
            for file, sha256 in tree.items():
                self.assertEqual(len(bytes.fromhex(sha256)), hashlib.sha256().digest_size, file)


if __name__ == "__main__":
    unittest.main()
