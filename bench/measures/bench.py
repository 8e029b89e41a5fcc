"""Paths of the program under test, the trainers and the scratch folder, and guarded runs."""

import glob
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAINERS = os.path.join(REPOSITORY, "bench/trainers")
# The memory that an ordinary user may lock by default.
ORDINARY_MEMLOCK_BYTES = 8 << 20
NOBODY_UID = 65534


class LeftOut(Exception):
    """What cannot be measured here, and why. A part yields it and continues, or raises it."""

    def line(self):
        return f"  left out: {self}"


class Bench:
    def __init__(self, quick=False):
        self.quick = quick
        # /var/tmp is on a disk by convention, where /tmp often is memory.
        self.scratch = tempfile.mkdtemp(prefix="antifreeze-bench-", dir="/var/tmp")
        os.chmod(self.scratch, 0o755)
        # A copy, which any user can execute and which does not change during a build.
        self.program = shutil.copy(find_program(), os.path.join(self.scratch, "antifreeze"))
        os.chmod(self.program, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def pick(self, full, quick):
        return quick if self.quick else full

    def folder(self, owner=None):
        folder = tempfile.mkdtemp(dir=self.scratch)
        if owner is not None:
            os.chown(folder, owner, owner)
            os.chmod(folder, 0o755)
        return folder

    def trainer(self, name, *arguments):
        """The command of a trainer, in a folder that any user can read."""
        path = shutil.copy(os.path.join(TRAINERS, name), os.path.join(self.scratch, name))
        return [find_interpreter(), "-S", "-E", path, *map(str, arguments)]

    def guarded(self, command, flags=()):
        return [self.program, "run", *flags, "--", *command]

    def environment(self, home):
        plain = {k: v for k, v in os.environ.items() if not k.startswith("ANTIFREEZE_")}
        return {**plain, "ANTIFREEZE_HOME": home}


def find_interpreter():
    """The system's Python, because this one may be in a home folder that other users cannot read."""
    return next(filter(os.path.exists, ["/usr/bin/python3", sys.executable]))


def find_program():
    named = os.environ.get("ANTIFREEZE_BIN")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target"))
    program = named or os.path.join(target, "release/antifreeze")
    if not os.access(program, os.X_OK):
        sys.exit("bench: no antifreeze to measure; build it with: cargo build --release")
    return program


class GuardedRun:
    """A trainer under `antifreeze run`. It ends when its standard input does."""

    def __init__(self, bench, command, flags=(), ordinary=False):
        as_nobody = ordinary and os.getuid() == 0
        self.home = bench.folder(NOBODY_UID if as_nobody else None)
        prefix = []
        if as_nobody:
            prefix = ["setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups", "--"]
        self.messages_path = os.path.join(self.home, "said")
        with open(self.messages_path, "wb") as messages:
            self.front = subprocess.Popen(
                prefix + bench.guarded(command, flags),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                env=bench.environment(self.home),
                cwd="/",
                preexec_fn=limit_locking if ordinary else None,
            )
        self.guard, self.page_fd = self.wait_for_guard()

    def wait_for_guard(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for path in glob.glob(os.path.join(self.home, "runs/*/guard")):
                with open(path) as file:
                    numbers = file.read().split()
                if len(numbers) == 4:
                    return int(numbers[0]), int(numbers[2])
            if self.front.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"the run did not start: {self.messages()}")

    def run_folder(self):
        return glob.glob(os.path.join(self.home, "runs/*"))[0]

    def messages(self):
        """What antifreeze has printed so far."""
        with open(self.messages_path) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.front.stdin.close()
        try:
            self.front.wait(20)
        except subprocess.TimeoutExpired:
            self.front.terminate()
            self.front.wait(20)


def limit_locking():
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    limit = ORDINARY_MEMLOCK_BYTES if hard == resource.RLIM_INFINITY else min(ORDINARY_MEMLOCK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
