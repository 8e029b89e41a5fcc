"""`antifreeze.guard()`, with the real program, in scripts of their own."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import PROGRAM, PYTHON, needs_program



@needs_program
class GuardTest(unittest.TestCase):
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

    def test_a_leak_in_another_thread_meets_the_wall(self):
        # The signal interrupts the main thread alone; what holds the other is the limit, which must not go along.
        self.assert_prints(
            ["True"], """
            import antifreeze, threading, time
            antifreeze.guard(budget="400MB", quiet=True)
            held = []

            def leak():
                try:
                    while len(held) < 400:
                        held.append(bytes(2_500_000).replace(b"\\0", b"x"))
                        time.sleep(0.02)
                except MemoryError:
                    pass

            thread = threading.Thread(target=leak)
            thread.start()
            while thread.is_alive():
                try:
                    thread.join()
                except MemoryError:
                    pass
            print(len(held) * 2.5 < 450)
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

    def test_one_that_cannot_start_leaves_the_first_where_it_is(self):
        self.assert_prints(
            ["said", "True True", "refused"], """
            import antifreeze, resource
            first = antifreeze.guard(budget="600MB", quiet=True)
            try:
                antifreeze.guard(budget="much", quiet=True)
            except RuntimeError:
                print("said")
            print(first.is_on, resource.getrlimit(resource.RLIMIT_DATA)[0] > 0)
            try:
                bytearray(3_000_000_000)
            except MemoryError:
                print("refused")
            """,
        )

    def test_sizes_mean_what_they_mean_on_the_command_line(self):
        self.assert_prints(
            ["500000000", "500000000", "600000000", "600000000", "629145600"], """
            import antifreeze
            from antifreeze._attach import may_use
            for size in (500_000_000, 5e8, "600M", "600 MB", "600MiB"):
                with antifreeze.guard(budget=size, quiet=True):
                    print(may_use())
            """,
        )

    def test_a_wrong_size_is_answered_with_the_one_that_was_meant(self):
        self.assert_prints(
            ["4GB, or 4MB?", "no budget at all", "10GB?", "at most 100%", "5GB?", "is needed here"], """
            import antifreeze
            for sizes, said in (
                (dict(budget=4), "4GB, or 4MB?"), (dict(budget=0), "no budget at all"), (dict(budget="10GBs"), "10GB?"),
                (dict(reserve="150%"), "at most 100%"), (dict(budget=-5), "5GB?"),
                (dict(allow_swap="10%"), "is needed here"),
            ):
                try:
                    antifreeze.guard(quiet=True, **sizes)
                except RuntimeError as error:
                    print(said if said in str(error) else error)
            """,
        )

    def test_one_inside_of_another(self):
        self.assert_prints(
            ["False True", "True False", "False", "-1"], """
            import antifreeze, resource
            limit = lambda: resource.getrlimit(resource.RLIMIT_DATA)[0]
            with antifreeze.guard(budget="2GB", quiet=True) as outer:
                with antifreeze.guard(budget="1GB", quiet=True) as inner:
                    print(outer.is_on, inner.is_on)
                print(outer.is_on, inner.is_on)
                assert limit() > 0
                len(bytearray(1_200_000_000))
            print(outer.is_on)
            print(limit())
            """,
        )

    def test_one_that_was_stopped_does_not_come_back(self):
        self.assert_prints(
            ["False -1"], """
            import antifreeze, resource
            outer = antifreeze.guard(budget="2GB", quiet=True)
            with antifreeze.guard(budget="1GB", quiet=True):
                outer.stop()
            print(outer.is_on, resource.getrlimit(resource.RLIMIT_DATA)[0])
            """,
        )

    def test_a_script_that_ends_itself_well_has_not_failed(self):
        for code, ended in ((0, "finished"), ("None", "finished"), (3, "failed")):
            self.run_script(f"import antifreeze, sys\nwith antifreeze.guard(quiet=True):\n    sys.exit({code})")
            said = subprocess.run(
                [PROGRAM, "runs"], capture_output=True, text=True,
                env={**os.environ, "ANTIFREEZE_HOME": os.path.join(self.folder, "home")},
            )
            self.assertIn(ended, said.stdout.split("\n")[1], code)

    def test_in_a_process_of_a_guarded_one_it_is_said_whose_budget_holds(self):
        ran = self.assert_prints(
            ["True", "True", "True"], """
            import antifreeze, os, subprocess, sys
            antifreeze.guard(budget="1GB", quiet=True)
            child = "import antifreeze; print(antifreeze.guard({}).is_on)"
            for words in ("budget='300MB'", ""):
                subprocess.run([sys.executable, "-W", "always", "-c", child.format(words)])
            forked = os.fork()
            if forked == 0:
                print(antifreeze.guard(budget="200MB").is_on)
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(forked, 0)
            """,
        )
        self.assertEqual(ran.stderr.count("is guarded already"), 2, ran.stderr)
        self.assertIn("--budget 300MB is ignored", ran.stderr)
        self.assertIn("--budget 200MB is ignored", ran.stderr)

    def test_a_program_of_another_version_is_refused(self):
        self.assert_prints(
            ["True True", "False -1"], """
            import antifreeze, os, resource
            from antifreeze._shim import page
            page.VERSION += 1
            try:
                antifreeze.guard(budget="600MB", quiet=True)
            except RuntimeError as error:
                text = str(error)
                print("are of different versions; install both" in text, os.environ["ANTIFREEZE_BIN"] in text)
            print("ANTIFREEZE_PAGE" in os.environ, resource.getrlimit(resource.RLIMIT_DATA)[0])
            """,
        )

    LEAK = """
        import antifreeze, os, signal, sys, threading, time
        from antifreeze._shim import page
        from antifreeze._shim.trainer import get_trainer

        def asked():
            # As the guard asks.
            get_trainer()._words[page.STOP_ASKED] += 1
            try:
                os.kill(os.getpid(), signal.SIGURG)
                time.sleep(20)
            except antifreeze.MemoryPressure:
                return "interrupted"

        def hears():
            return bool(get_trainer()._words[page.LISTENS] & page.HEARS)
        """

    def test_one_that_was_started_by_a_thread_interrupts_the_script_as_well(self):
        self.assert_prints(
            ["True", "interrupted"], textwrap.dedent(self.LEAK) + textwrap.dedent("""
            thread = threading.Thread(target=lambda: antifreeze.guard(budget="2GB", quiet=True))
            thread.start()
            thread.join()
            print(hears())
            print(asked())
            """),
        )

    def test_a_script_with_a_use_for_the_signal_is_interrupted_and_keeps_its_own(self):
        self.assert_prints(
            ["own", "interrupted", "own"], textwrap.dedent(self.LEAK) + textwrap.dedent("""
            signal.signal(signal.SIGURG, lambda number, frame: print("own"))
            antifreeze.guard(budget="2GB", quiet=True)
            signal.raise_signal(signal.SIGURG)
            print(asked())
            signal.raise_signal(signal.SIGURG)
            """),
        )

    def test_a_signal_that_is_not_pythons_to_hear_is_told(self):
        ran = self.assert_prints(
            ["False"], textwrap.dedent(self.LEAK) + textwrap.dedent("""
            # What it says of a handler that is none of Python's.
            signal.getsignal = lambda number: None if number == signal.SIGURG else signal.SIG_DFL
            antifreeze.guard(budget="2GB", quiet=True)
            print(hears())
            """),
        )
        self.assertIn("cannot interrupt", ran.stderr)

    def test_a_guard_whose_program_was_killed_ends_all_the_same(self):
        self.assert_prints(
            ["-1", "False", "True"], """
            import antifreeze, os, resource, signal
            score = open("/proc/self/oom_score_adj").read()
            guard = antifreeze.guard(budget="2GB", quiet=True)
            page = os.environ["ANTIFREEZE_PAGE"].split(":")[0]
            guard._front._process.send_signal(signal.SIGKILL)
            guard._front._process.wait()
            guard.stop()
            print(resource.getrlimit(resource.RLIMIT_DATA)[0])
            print(os.path.exists(page))
            print(open("/proc/self/oom_score_adj").read() == score)
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
