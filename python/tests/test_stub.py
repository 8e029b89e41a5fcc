"""The stub in every Python of this machine: nothing that a script can see is different.

ANTIFREEZE_TEST_PYTHONS names the interpreters, separated by colons; ANTIFREEZE_TEST_OLD_PYTHONS those that are too
old for the shim.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import PYTHON

OLD_PYTHONS = [path for path in os.environ.get("ANTIFREEZE_TEST_OLD_PYTHONS", "").split(":") if path]
PYTHONS = [
    path for path in os.environ.get("ANTIFREEZE_TEST_PYTHONS", sys.executable).split(":") if path not in OLD_PYTHONS
]


class StubTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        # As it lies in the cache: the stub, and the package beside it.
        self.home = os.path.join(self.folder, "shim")
        shutil.copytree(os.path.join(PYTHON, "antifreeze/_stub"), os.path.join(self.home, "stub"))
        os.symlink(PYTHON, os.path.join(self.home, "library"))
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def run_in(self, python, *arguments, shim, **environment):
        """Output, errors and status."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment = {**inherited, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        if shim:
            paths = [os.path.join(self.home, "stub"), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = ":".join(path for path in paths if path)
            environment["ANTIFREEZE_PAGE"] = os.path.join(self.folder, "no page")
        ended = subprocess.run(
            [python, *arguments], cwd=self.work, env=environment, capture_output=True, timeout=60
        )
        return ended.stdout, ended.stderr, ended.returncode

    def assert_same(self, python, *arguments, **environment):
        without = self.run_in(python, *arguments, shim=False, **environment)
        with_it = self.run_in(python, *arguments, shim=True, **environment)
        self.assertEqual(without, with_it, python)
        return without

    def each(self):
        return PYTHONS

    def test_a_script_sees_what_it_always_saw(self):
        script = self.write("show.py", """
            import sys
            print(sys.path, sys.argv, sys.flags)
            print([name for name in sorted(sys.modules) if "antifreeze" in name])
        """)
        for python in self.each():
            self.assert_same(python, script, "one")
            self.assert_same(python, "-W", "error", script)
            for flag in ("-I", "-E", "-B", "-u"):
                self.assert_same(python, flag, script)
            # Without site there is nobody to take our folder from the path again, and no shim.
            self.assert_same(python, "-S", "-c", "print(1)")
            self.assert_same(python, "-c", "import sys; print(sys.path)")
            self.assert_same(python, "-m", "this")

    def test_a_sitecustomize_that_is_there_still_runs(self):
        self.write("site/sitecustomize.py", "import sys; sys.customized = __file__\n")
        script = self.write("show.py", "import sys; print(sys.customized)\n")
        for python in self.each():
            output, _, _ = self.assert_same(python, script, PYTHONPATH=os.path.join(self.work, "site"))
            self.assertIn(b"sitecustomize", output)

    def test_a_sitecustomize_that_fails_is_told_as_ever(self):
        self.write("site/sitecustomize.py", "1 / 0\n")
        for python in self.each():
            _, errors, _ = self.assert_same(python, "-c", "print(1)", PYTHONPATH=os.path.join(self.work, "site"))
            self.assertIn(b"sitecustomize", errors)

    def test_a_framework_that_cannot_be_imported_fails_as_ever(self):
        self.write("jax/__init__.py", "import jax.inner\n")
        self.write("jax/inner.py", "def fail():\n    raise RuntimeError('no driver')\nfail()\n")
        script = self.write("train.py", "import jax\n")
        for python in self.each():
            _, errors, _ = self.assert_same(python, script)
            self.assertIn(b"no driver", errors)

    def test_a_framework_that_is_not_there_is_not_there(self):
        script = self.write("train.py", """
            import importlib.util
            print(importlib.util.find_spec("tensorflow"))
            try:
                import tensorflow
            except ImportError as error:
                print(type(error).__name__, error)
        """)
        for python in self.each():
            self.assert_same(python, "-I", script)
            self.assert_same(python, script)

    def test_asking_where_a_framework_is_does_not_spend_the_look_at_it(self):
        self.write("jax/__init__.py", "__version__ = '0'\n")
        script = self.write("train.py", """
            import importlib.util, sys
            importlib.util.find_spec("jax")
            import jax
            print("antifreeze._shim.jax" in sys.modules, jax.__loader__, jax.__spec__.name)
        """)
        for python in self.each():
            output, errors, status = self.run_in(python, script, shim=True)
            self.assertEqual((output[:4], errors, status), (b"True", b"", 0), python)


class OldPythonTest(StubTest):
    """Python 2 and those that are too old for the shim."""

    def each(self):
        return OLD_PYTHONS

    def test_asking_where_a_framework_is_does_not_spend_the_look_at_it(self):
        """There is no look."""

    def test_a_framework_that_is_not_there_is_not_there(self):
        script = self.write("train.py", "try:\n    import tensorflow\nexcept ImportError as error:\n    print(error)\n")
        for python in self.each():
            self.assert_same(python, script)

    def test_a_script_sees_what_it_always_saw(self):
        script = self.write("show.py", "import sys\nprint(sys.path, sys.argv)\n")
        for python in self.each():
            self.assert_same(python, script, "one")
            self.assert_same(python, "-W", "error", script)


if __name__ == "__main__":
    unittest.main()
