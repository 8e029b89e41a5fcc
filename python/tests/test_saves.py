"""Checkpoints survive whatever happens while they are written.

Sequences of saves, refusals of memory, full disks, kills at any system call, power cuts and restarts run through the
real code of `antifreeze._shim.checkpoints`, on a folder in memory. After each of them, the newest complete checkpoint
of each kind is still there, and `antifreeze.last_save` returns it.
"""

import contextlib
import errno
import io
import json
import os
import random
import shutil
import struct
import tempfile
import unittest
import warnings
import zipfile
from unittest import mock

import support  # noqa: F401, puts the package on sys.path
import antifreeze
from antifreeze._shim import checkpoints, registry, save_path
from antifreeze._shim.checkpoints import KERAS, KERAS_WEIGHTS, KINDS, LIGHTNING, SCRIPT, TORCH, TRANSFORMERS
from antifreeze._shim.trainer import CannotSave, get_trainer

SEQUENCES = 10_000
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Killed(BaseException):
    """The process is gone: nothing that it would have done in a handler is done."""


class Machine:
    """The functions of `os` that checkpoints are written with. A kill ends the process at one of them; a power cut
    also takes back what had not been flushed."""

    def __init__(self):
        self.calls_left = None
        self.is_dead = False
        # Paths that were written and not flushed, and changes of folders that were not.
        self.dirty_files = set()
        self.changes = []
        self.path = os.path

    def __getattr__(self, name):
        return getattr(os, name)

    def _call(self):
        if self.is_dead:
            raise Killed
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.is_dead = True
                raise Killed

    def wrote(self, path):
        self._call()
        self.dirty_files.add(path)

    def makedirs(self, *arguments, **named):
        self._call()
        os.makedirs(*arguments, **named)

    def utime(self, *arguments, **named):
        self._call()
        os.utime(*arguments, **named)

    def open(self, path, flags):
        self._call()
        return os.open(path, flags)

    def fsync(self, descriptor):
        self._call()
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self.changes = [change for change in self.changes if change[1] != path]
        self.dirty_files.discard(path)

    def replace(self, source, target):
        self._call()
        before = _content(target)
        os.replace(source, target)
        self.changes.append(("replace", os.path.dirname(target), source, target, before))
        self.dirty_files = {
            target + path[len(source):] if path.startswith(source) else path for path in self.dirty_files
        }

    def unlink(self, path):
        self._call()
        before = _content(path)
        os.unlink(path)
        self.changes.append(("unlink", os.path.dirname(path), None, path, before))

    def rmtree(self, path, ignore_errors=False):
        self._call()
        shutil.rmtree(path, ignore_errors=ignore_errors)

    def cut_power(self, chance):
        """Some of what was not flushed is lost, in any order."""
        for what, _, source, target, before in reversed(self.changes):
            if chance.random() < 0.5:
                continue
            if what == "replace" and os.path.exists(target):
                os.replace(target, source)
            if before is not None:
                with open(target, "wb") as file:
                    file.write(before[0])
                os.utime(target, ns=(before[1], before[1]))
        for path in self.dirty_files:
            if os.path.isfile(path):
                os.truncate(path, chance.randrange(os.path.getsize(path) + 1))


def _content(path):
    """Bytes and time; None of what is not a file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(), os.stat(path).st_mtime_ns


# What frameworks write, in small: complete by the same rules.

ARCHIVES = {
    TORCH: ("archive/data.pkl", b"antifreeze"), LIGHTNING: ("archive/data.pkl", b"pytorch-lightning_version"),
    KERAS: ("config.json", b"{}"),
}


def archive(kind, mark):
    name, key = ARCHIVES[kind]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(name, key + b" " + mark)
    return content.getvalue()


def hdf5(mark):
    head = bytes([0, 0, 0, 0, 0, 8, 8, 0]) + bytes(8)
    length = 8 + len(head) + 24 + 8 + len(mark)
    addresses = struct.pack("<3Q", 0, 0, length)
    return b"\x89HDF\r\n\x1a\n" + head + addresses + bytes(8) + mark


def safetensors(mark):
    header = json.dumps({"weight": {"dtype": "U8", "shape": [len(mark)], "data_offsets": [0, len(mark)]}}).encode()
    return struct.pack("<Q", len(header)) + header + mark


def mark_of(path):
    """The number that a checkpoint was written with."""
    if os.path.isdir(path):
        path = os.path.join(path, "model.safetensors")
    with open(path, "rb") as file:
        content = file.read()
    return int(content[content.rindex(b"mark") + 4 :].split(b";")[0])


class Writer:
    """Writes a checkpoint in pieces, and fails in the given way."""

    def __init__(self, machine, chance, trouble):
        self._machine, self._chance, self._trouble = machine, chance, trouble

    def file(self, path, content):
        if self._trouble == "cut short":
            # As where an error of a library is lost.
            content = content[: self._chance.randrange(len(content))]
        half = self._chance.randrange(len(content) + 1)
        with open(path, "wb") as file:
            self._machine.wrote(path)
            file.write(content[:half])
            file.flush()
            self._fail()
            self._machine.wrote(path)
            file.write(content[half:])

    def _fail(self):
        if self._trouble == "no memory":
            raise MemoryError
        if self._trouble == "full disk":
            raise OSError(errno.ENOSPC, "No space left on device")

    def folder(self, path, mark, step):
        os.makedirs(path)
        self.file(os.path.join(path, "model.safetensors"), safetensors(mark))
        self.file(os.path.join(path, "trainer_state.json"), json.dumps({"global_step": step}).encode())


class Trainer:
    """One run after the other in a folder, and what is known of its checkpoints."""

    TROUBLES = ("", "", "", "no memory", "full disk", "cut short", "killed", "killed", "power cut")

    def __init__(self, folder, seed):
        self.folder = folder
        self.chance = random.Random(seed)
        self.runs = 0
        self.saves = []
        self.step = 0
        self.marks = 0
        # By kind: marks of which one has to be found. Without an entry, none has been saved.
        self.wanted = {}
        self.story = []
        self.restart()

    def restart(self):
        self.runs += 1
        # The newest run comes first.
        self.saves.insert(0, os.path.join(self.folder, f"run-{self.runs}"))
        self.story.append("restart")

    def act(self):
        if self.chance.random() < 0.2:
            self.restart()
            return
        kind = self.chance.choice(KINDS)
        trouble = self.chance.choice(self.TROUBLES)
        if kind == SCRIPT and trouble == "cut short":
            # Only the script could tell that a file of its own format is cut short.
            trouble = "full disk"
        # A second model may begin at step 0.
        self.step = 0 if self.chance.random() < 0.1 else self.step + self.chance.randrange(3)
        self.marks += 1
        machine = Machine()
        if trouble in ("killed", "power cut"):
            machine.calls_left = self.chance.randrange(25)
        self.story.append(f"save {kind} {self.marks} at step {self.step}: {trouble or 'well'}")
        before = self.wanted.get(kind, set())
        with mock.patch.object(checkpoints, "os", machine), mock.patch.object(checkpoints, "shutil", machine):
            try:
                self.save(kind, Writer(machine, self.chance, trouble), b"mark%d;" % self.marks)
            except Killed:
                # It may or may not have been done.
                self.wanted[kind] = before | {self.marks} if before else {self.marks, None}
            except (MemoryError, OSError, checkpoints.Damaged):
                pass
            else:
                self.wanted[kind] = {self.marks}
        if trouble == "power cut":
            machine.cut_power(self.chance)
            if not machine.is_dead:
                # What was done is on the disk.
                machine.dirty_files.clear()
        if machine.is_dead or trouble == "power cut":
            self.restart()

    def touched(self):
        """Kinds that have to be looked at now: whether one that was killed was done is seen only before the next."""
        return [kind for kind, marks in self.wanted.items() if len(marks) > 1]

    def save(self, kind, writer, mark):
        saves, step = self.saves[0], self.step
        if kind in (TORCH, LIGHTNING):
            checkpoints.write(saves, kind, step, lambda path: writer.file(path, archive(kind, mark)))
        elif kind == KERAS_WEIGHTS:
            checkpoints.write(saves, kind, step, lambda path: writer.file(path, hdf5(mark)))
        elif kind == KERAS:
            path = os.path.join(self.folder, "last.keras")
            temporary = os.path.join(self.folder, f".{self.marks}-last.keras")
            checkpoints.replace(path, kind, lambda path: writer.file(path, archive(kind, mark)), temporary)
            checkpoints.write_pointer(saves, kind, step, path)
        elif kind == TRANSFORMERS:
            path = os.path.join(self.folder, f"checkpoint-{self.marks}")
            temporary = os.path.join(self.folder, f".aside-{self.marks}")
            checkpoints.replace(path, kind, lambda path: writer.folder(path, mark, step), temporary)
            checkpoints.write_pointer(saves, kind, step, path, ours=True)
        else:
            path = os.path.join(self.folder, f"own-{self.marks}.pt")
            writer.file(path, archive(TORCH, mark))
            checkpoints.write_pointer(saves, kind, step, path)

    def wrong(self, kinds):
        """What is not as it has to be; None when all is well."""
        variables = {"ANTIFREEZE_RESUME_SAVES": os.pathsep.join(self.saves), "ANTIFREEZE_RESUME": ""}
        with mock.patch.dict(os.environ, variables), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in kinds:
                wanted = self.wanted.get(kind, {None})
                path = antifreeze.last_save(kind)
                try:
                    found = None if path is None else mark_of(path)
                except (OSError, ValueError) as error:
                    found = f"{path}: {error}"
                if found not in wanted:
                    return f"last_save({kind!r}) found {found}, and not {wanted}"
                if found is not None:
                    self.wanted[kind] = {found}
        return None


def check(sequences, first_seed=0):
    """(number of the sequence, its story, what was wrong), of the first that went wrong."""
    holder = tempfile.mkdtemp(dir=MEMORY)
    try:
        for seed in range(first_seed, first_seed + sequences):
            folder = os.path.join(holder, str(seed))
            os.mkdir(folder)
            trainer = Trainer(folder, seed)
            for _ in range(trainer.chance.randrange(2, 9)):
                trainer.act()
                # Of all kinds at the end: what was lost once does not come back.
                wrong = trainer.wrong(trainer.touched())
                if wrong is not None:
                    return seed, trainer.story, wrong
            wrong = trainer.wrong(KINDS)
            if wrong is not None:
                return seed, trainer.story, wrong
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(holder)
    return None


class SurvivalTest(unittest.TestCase):
    def test_the_newest_complete_checkpoint_of_each_kind_survives(self):
        self.assertIsNone(check(SEQUENCES))

    # Each of these was so once, or could be: the property has to notice.

    def assert_noticed(self, *patches):
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            self.assertIsNotNone(check(2000))

    def test_it_notices_kinds_that_replace_each_other(self):
        def remove_all_but(folder, kind, newest, keep=1):
            for checkpoint in checkpoints.scan(folder):
                if checkpoint.entry != newest:
                    checkpoints.remove(checkpoint.entry)

        self.assert_noticed(mock.patch.object(checkpoints, "remove_older", remove_all_but))

    def test_it_notices_what_is_not_read_back(self):
        self.assert_noticed(mock.patch.object(checkpoints, "verify", lambda kind, path: None))

    def test_it_notices_what_is_not_flushed(self):
        nothing = lambda path: None
        self.assert_noticed(
            mock.patch.object(checkpoints, "flush", nothing), mock.patch.object(checkpoints, "flush_folder", nothing)
        )

    def test_it_notices_what_is_removed_too_early(self):
        write = checkpoints.replace

        def remove_first(path, *rest):
            checkpoints.remove(path)
            for checkpoint in checkpoints.scan(os.path.dirname(path)):
                checkpoints.remove(checkpoint.entry)
            write(path, *rest)

        self.assert_noticed(mock.patch.object(checkpoints, "replace", remove_first))


class VerifyTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_a_checkpoint_that_is_cut_short_anywhere_is_damaged(self):
        contents = {kind: archive(kind, b"mark1;") for kind in ARCHIVES}
        contents[KERAS_WEIGHTS] = hdf5(b"mark1;")
        for kind, content in contents.items():
            checkpoints.verify(kind, self.write("whole", content))
            for length in range(len(content)):
                with self.assertRaises(checkpoints.Damaged, msg=(kind, length)):
                    checkpoints.verify(kind, self.write("half", content[:length]))

    def test_a_changed_byte_of_what_is_in_an_archive_is_noticed(self):
        content = archive(TORCH, b"mark1;")
        path = self.write("changed.pt", content.replace(b"mark1", b"mark2"))
        with self.assertRaises(checkpoints.Damaged):
            checkpoints.verify(TORCH, path)

    def test_one_kind_is_not_taken_for_another(self):
        path = self.write("step-1.ckpt", archive(TORCH, b"mark1;"))
        with self.assertRaisesRegex(checkpoints.Damaged, "pytorch-lightning_version"):
            checkpoints.verify(LIGHTNING, path)

    def test_a_folder_of_the_trainer_without_its_state_is_damaged(self):
        path = os.path.join(self.folder, "checkpoint-3")
        os.mkdir(path)
        self.write("checkpoint-3/model.safetensors", safetensors(b"mark1;"))
        with self.assertRaises(checkpoints.Damaged):
            checkpoints.verify(TRANSFORMERS, path)
        self.write("checkpoint-3/trainer_state.json", b'{"global_step": 3}')
        checkpoints.verify(TRANSFORMERS, path)
        self.write("checkpoint-3/optimizer.pt", archive(TORCH, b"mark1;")[:-5])
        with self.assertRaises(checkpoints.Damaged):
            checkpoints.verify(TRANSFORMERS, path)


class RoomTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def saves(self, size, free):
        """Whether a checkpoint of so many bytes is written to a disk with so many free."""
        room = mock.Mock(f_bavail=free, f_frsize=1)
        with mock.patch.dict(os.environ, {"ANTIFREEZE_SAVES": self.folder}), mock.patch("os.statvfs", lambda _: room):
            def write(path):
                with open(path, "wb") as file:
                    file.write(archive(TORCH, b"mark1;"))

            save_path.write_checkpoint(TORCH, 1, size, write)

    def test_a_small_checkpoint_fits_on_a_small_disk(self):
        self.saves(6_000_000, free=59_000_000)
        self.saves(6_000_000, free=14_000_000)
        self.saves(10_000_000_000, free=10_100_000_000)

    def test_what_does_not_fit_is_said_in_numbers(self):
        with self.assertRaisesRegex(CannotSave, r"6.2 MB needs 13 MB free on the disk of .*, which has 9.0 MB"):
            self.saves(6_200_000, free=9_000_000)
        with self.assertRaisesRegex(CannotSave, "10.0 GB needs 10.1 GB free .*, which has 10.0 GB"):
            self.saves(10_000_000_000, free=10_050_000_000 - 1_000_000)


class LastSaveTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        environment = mock.patch.dict(os.environ, {"ANTIFREEZE_RESUME_SAVES": self.folder})
        environment.start()
        self.addCleanup(environment.stop)
        self.addCleanup(setattr, registry, "on_checkpoint", None)

    def save(self, kind, step):
        content = archive(kind, b"mark1;") if kind in ARCHIVES else hdf5(b"mark1;")

        def write(path):
            with open(path, "wb") as file:
                file.write(content)

        return checkpoints.write(self.folder, kind, step, write)

    def loaded(self, *modules):
        """With these modules imported."""
        return mock.patch.dict("sys.modules", {name: mock.Mock() for name in modules})

    def test_each_framework_gets_its_own_kind(self):
        paths = {kind: self.save(kind, step) for step, kind in enumerate((LIGHTNING, KERAS, KERAS_WEIGHTS, TORCH))}
        self.assertEqual(antifreeze.last_save(), paths[TORCH])
        for module, kind in (
            ("antifreeze.lightning", LIGHTNING), ("lightning.pytorch", LIGHTNING), ("antifreeze.keras", KERAS),
        ):
            with self.loaded(module):
                self.assertEqual(antifreeze.last_save(), paths[kind], module)
        self.assertEqual(antifreeze.last_save("keras-weights"), paths[KERAS_WEIGHTS])

    def test_a_checkpoint_that_the_framework_cannot_load_is_named_and_not_returned(self):
        path = self.save(TORCH, 7)
        with self.loaded("antifreeze.lightning"), self.assertWarnsRegex(UserWarning, "begins at step 0.*step-7.pt"):
            self.assertIsNone(antifreeze.last_save())
        self.assertEqual(antifreeze.last_save("torch"), path)

    def test_what_the_script_saves_itself_goes_first(self):
        self.save(TORCH, 7)
        own = os.path.join(self.folder, "own.bin")
        with open(own, "w") as file:
            file.write("x")
        checkpoints.write_pointer(self.folder, SCRIPT, 3, own)
        antifreeze.on_checkpoint(lambda: own)
        self.assertEqual(antifreeze.last_save(), own)
        self.assertEqual(antifreeze.resume(load=lambda path: 3 if path == own else 0), 3)

    def rotating(self):
        """A script that keeps its newest two checkpoints."""
        paths = []

        def save():
            paths.append(os.path.join(self.folder, f"own-{len(paths)}.bin"))
            with open(paths[-1], "w") as file:
                file.write("x")
            for old in paths[:-2]:
                checkpoints.remove(old)
            return paths[-1]

        return antifreeze.on_checkpoint(save), paths

    def test_checkpoints_that_the_script_saves_by_itself_are_known(self):
        save, paths = self.rotating()
        with mock.patch.dict(os.environ, {"ANTIFREEZE_SAVES": self.folder}):
            for count in range(1, 6):
                get_trainer().steps.count = count
                self.assertEqual(save(), paths[-1])
                self.assertEqual(antifreeze.last_save(), paths[-1])
        self.assertLess(len(checkpoints.scan(self.folder)), 4)
        # One that is damaged is no loss.
        os.truncate(paths[-1], 0)
        self.assertEqual(antifreeze.last_save(), paths[-2])

    def test_without_a_guard_a_checkpoint_of_the_script_is_only_saved(self):
        save, paths = self.rotating()
        with mock.patch.dict(os.environ):
            os.environ.pop("ANTIFREEZE_SAVES", None)
            self.assertEqual(save(), paths[-1])
        self.assertEqual(checkpoints.scan(self.folder), [])

    def test_a_damaged_checkpoint_gives_way_to_an_older_one(self):
        older = os.path.join(self.folder, "older")
        os.environ["ANTIFREEZE_RESUME_SAVES"] += os.pathsep + older
        newest = self.save(TORCH, 9)
        os.makedirs(older)
        os.rename(self.save(TORCH, 8), os.path.join(older, "step-8.pt"))
        newest = self.save(TORCH, 9)
        os.truncate(newest, 40)
        self.assertEqual(antifreeze.last_save(), os.path.join(older, "step-8.pt"))

    def test_a_path_that_a_person_has_set_is_taken_as_it_is(self):
        path = os.path.join(self.folder, "mine.bin")
        with open(path, "w") as file:
            file.write("x")
        with mock.patch.dict(os.environ, {"ANTIFREEZE_RESUME": path}):
            self.assertEqual(antifreeze.last_save(), path)
        with mock.patch.dict(os.environ, {"ANTIFREEZE_RESUME": path + "gone"}):
            with self.assertWarnsRegex(UserWarning, "does not exist or cannot be loaded"):
                self.assertIsNone(antifreeze.last_save())

    def test_an_unknown_kind_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "unknown kind 'lightening'"):
            antifreeze.last_save("lightening")


if __name__ == "__main__":
    unittest.main()
