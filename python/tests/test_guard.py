"""`antifreeze.guard()`, with the real program, in scripts of their own."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import PYTHON

PROGRAM = os.environ.get("ANTIFREEZE_BIN")


@unittest.skipUnless(PROGRAM, "ANTIFREEZE_BIN names no antifreeze")
class Guard(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def run_script(self, text, *before, **more):
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANTIFREEZE_")}
        environment = {
            **inherited, "PYTHONPATH": PYTHON, "ANTIFREEZE_HOME": os.path.join(self.folder, "home"),
            "ANTIFREEZE_BIN": PROGRAM, **more,
        }
        return subprocess.run(
            [*before, sys.executable, path], cwd=self.folder, env=environment, capture_output=True, text=True,
            timeout=120,
        )

    def assert_prints(self, expected, text, *before, **more):
        ran = self.run_script(text, *before, **more)
        self.assertEqual(ran.stdout.split("\n")[:-1], expected, ran.stderr)
        return ran

    def test_a_large_request_is_refused_and_later_it_is_not(self):
        ran = self.assert_prints(
            ["refused", "True", "False", "-1", "3000000000"], """
            import antifreeze, resource
            with antifreeze.guard(budget="600MB") as guard:
                try:
                    bytearray(3_000_000_000)
                except MemoryError:
                    print("refused")
                print(guard.is_on)
            print(guard.is_on)
            print(resource.getrlimit(resource.RLIMIT_DATA)[0])
            import mmap
            print(len(mmap.mmap(-1, 3_000_000_000)))
            """,
        )
        self.assertIn("guarding", ran.stderr)

    def test_a_leak_ends_with_an_exception_and_the_script_goes_on(self):
        self.assert_prints(
            ["True", "goes on"], """
            import antifreeze, time
            antifreeze.guard(budget="400MB", quiet=True)

            def leak():
                held = []
                while True:
                    held.append(bytearray(50_000))
                    time.sleep(0.0002)

            try:
                leak()
            except MemoryError as error:
                print(True)
            time.sleep(3)
            more = bytearray(200_000_000)
            print("goes on")
            """,
        )

    def test_what_is_run_by_antifreeze_is_guarded_already(self):
        self.assert_prints(
            ["True", "1"], """
            import antifreeze, os
            guard = antifreeze.guard(budget="1GB")
            print(guard.is_on)
            guard.stop()
            print(len(os.listdir(os.environ["ANTIFREEZE_HOME"] + "/runs")))
            """,
            PROGRAM, "run", "--quiet", "--",
        )

    def test_a_child_that_is_forked_does_not_end_the_guard(self):
        self.assert_prints(
            ["0", "refused"], """
            import antifreeze, os, sys
            antifreeze.guard(budget="600MB", quiet=True)
            child = os.fork()
            if child == 0:
                sys.exit(0)
            print(os.waitpid(child, 0)[1])
            try:
                bytearray(3_000_000_000)
            except MemoryError:
                print("refused")
            """,
        )

    def test_a_second_guard_takes_the_place_of_the_first(self):
        self.assert_prints(
            ["False True", "500000000"], """
            import antifreeze
            first = antifreeze.guard(budget="300MB", quiet=True)
            second = antifreeze.guard(budget="900MB", quiet=True)
            print(first.is_on, second.is_on)
            print(len(bytearray(500_000_000)))
            """,
        )

    def test_what_is_wrong_is_said(self):
        ran = self.run_script("import antifreeze; antifreeze.guard(budget='much')")
        self.assertIn("the guard did not start", ran.stderr)
        self.assertIn("much", ran.stderr)
        ran = self.run_script("import antifreeze; antifreeze.guard()", ANTIFREEZE_BIN="", PATH="/nowhere")
        self.assertIn("`antifreeze` was not found", ran.stderr)

    def test_a_run_that_was_guarded_so_is_explained(self):
        self.run_script("""
            import antifreeze
            antifreeze.guard(budget="600MB")
            print("before")
            data = bytearray(3_000_000_000)
            """)
        said = subprocess.run(
            [PROGRAM, "runs"], capture_output=True, text=True,
            env={**os.environ, "ANTIFREEZE_HOME": os.path.join(self.folder, "home")},
        )
        self.assertIn("walled", said.stdout)


if __name__ == "__main__":
    unittest.main()
