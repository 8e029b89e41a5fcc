"""The parent of one run, in a process of its own: `supervise.py SPECIFICATION RESULT`.

It is a session leader and a child subreaper, so that every process the run leaves behind becomes its descendant and is
seen, however it was started. Where it is allowed to, it gives the run namespaces of its own, with an empty /tmp,
/var/tmp and /dev/shm, a loopback network and System V IPC that nothing else uses.
"""

import base64
import ctypes
import fcntl
import hashlib
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import termios
import time

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x20000, 0x8000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
#: The state of a listening socket in /proc/net/tcp.
LISTENING = "0A"

#: Output beyond this is compared by its length and digest alone.
KEPT_BYTES = 1 << 20
#: The line at which a program that waits for something says that it waits.
READY = re.compile(rb"^ready\r?\n", re.MULTILINE)


class Capture:
    """The output read from one descriptor."""

    def __init__(self, fd):
        self.fd = fd
        self.kept = bytearray()
        self.length = 0
        self.digest = hashlib.sha256()
        self.open = fd is not None
        if self.open:
            os.set_blocking(fd, False)

    def read_available(self):
        """Reads what is available. Returns False if there is no more at the moment."""
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return False
        except OSError:  # EIO: a terminal that every process has closed
            data = b""
        if not data:
            self.open = False
            return False
        self.length += len(data)
        self.digest.update(data)
        self.kept += data[: KEPT_BYTES - len(self.kept)]
        return True

    def result(self):
        whole = self.length == len(self.kept)
        return {
            "kept": base64.b64encode(self.kept).decode(),
            "rest": "" if whole else f"{self.length} bytes, sha256 {self.digest.hexdigest()}",
        }


class Namespace:
    """Folders, sockets and IPC objects of this run alone."""

    def __init__(self, libc, private, root):
        self.folders = []
        self.root = root
        self.exists = os.geteuid() == 0 and libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET) == 0
        if not self.exists:
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
        covered = os.open(root, os.O_PATH | os.O_DIRECTORY)
        for folder in private:
            if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=1777") != 0:
                continue
            self.folders.append(folder)
            if root.startswith(folder + "/"):
                os.makedirs(root)
                if libc.mount(f"/proc/self/fd/{covered}".encode(), root.encode(), None, MS_BIND, None) != 0:
                    raise OSError(ctypes.get_errno(), "cannot bind the folder of the suite", root)
        os.close(covered)

    def leftovers(self):
        if not self.exists:
            return {}
        found = {f"files in {folder}": self.files(folder) for folder in self.folders}
        found["sockets"] = open_sockets()
        found["System V IPC"] = [
            kind for kind in ("shm", "sem", "msg") if len(read_lines(f"/proc/sysvipc/{kind}")) > 1
        ]
        return found

    def files(self, folder):
        """All files in a private folder, without the bound folder of the suite."""
        found = []
        for path, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if os.path.join(path, name) != self.root]
            found += [os.path.join(path, name) for name in [*folders, *files]]
        return sorted(found)


def read_lines(path):
    with open(path) as file:
        return file.read().splitlines()


def open_sockets():
    """Unix sockets, listening TCP sockets and UDP sockets. A TCP connection that is being closed belongs to no
    process."""
    found = [" ".join(["unix", *line.split()[7:]]) for line in read_lines("/proc/self/net/unix")[1:]]
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        path = f"/proc/self/net/{kind}"
        for line in read_lines(path)[1:] if os.path.exists(path) else []:
            address, state = line.split()[1], line.split()[3]
            if kind.startswith("udp") or state == LISTENING:
                found.append(f"{kind} {address}")
    return sorted(found)


def descendants():
    """The name of each living process below this one, by its pid."""
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        name, rest = stat[stat.index(b"(") + 1 :].rsplit(b")", 1)
        state, parent = rest.split()[:2]
        if state != b"Z":
            parents[int(entry)] = int(parent)
            names[int(entry)] = name.decode(errors="replace")
    found, wave = {}, {os.getpid()}
    while wave:
        wave = {pid for pid, parent in parents.items() if parent in wave and pid not in found}
        found.update((pid, names[pid]) for pid in wave)
    return found


def cgroups_of(runs):
    """The cgroups that are named after these runs. Another run may have begun in the same millisecond: what processes
    of others are in is theirs."""
    found = []
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(folder, name) for name in names if any(run in name for run in runs)]
    ours = descendants()
    return sorted(path for path in found if processes_in(path) <= set(ours))


def processes_in(cgroup):
    try:
        with open(os.path.join(cgroup, "cgroup.procs")) as file:
            return {int(line) for line in file}
    except OSError:
        return set()


class Run:
    def __init__(self, specification):
        self.it = specification
        self.status = None
        self.stops = []
        self.sent = 0
        #: How much had been written when something was sent last.
        self.written = 0
        self.input = None

    def start(self):
        terminal = self.it["terminal"]
        if terminal:
            master, slave = os.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 30, 90, 0, 0))
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            ends, captured = (slave, slave, slave), (master, None)
            self.input = master
        else:
            reading, output = os.pipe()
            reading_errors, errors = os.pipe()
            if self.it["stdin"] is None:
                given = os.open("/dev/null", os.O_RDONLY)
            else:
                given, self.input = os.pipe()
            ends, captured = (given, output, errors), (reading, reading_errors)
        os.set_inheritable(ends[0], False)
        self.pid = os.fork()
        if self.pid == 0:
            self.exec_command(ends)
        try:
            os.setpgid(self.pid, self.pid)
        except OSError:
            pass  # The child has done so, and has become the command already.
        # The end of a terminal hangs up its session.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for fd in set(ends):
            os.close(fd)
        self.output, self.errors = (Capture(fd) for fd in captured)
        self.given = b"" if self.it["stdin"] is None else base64.b64decode(self.it["stdin"])
        if self.input is not None:
            os.set_blocking(self.input, False)

    def exec_command(self, ends):
        """Turns the child into the command, as a shell with job control would."""
        try:
            os.setpgid(0, 0)
            if self.it["terminal"]:
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
                os.tcsetpgrp(ends[0], os.getpid())
            for number, fd in enumerate(ends):
                os.dup2(fd, number, inheritable=True)
            # The suite may run under `nohup`, or in the background of a shell, with signals ignored.
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.chdir(self.it["folder"])
            os.execvpe(self.it["command"][0], self.it["command"], self.it["env"])
        except FileNotFoundError:
            os._exit(127)
        except BaseException:
            os._exit(126)

    def feed(self):
        """Writes to standard input as much as it takes; closes it after the last byte."""
        if self.input is None or self.it["terminal"]:
            return
        try:
            while self.given:
                self.given = self.given[os.write(self.input, self.given) :]
        except BlockingIOError:
            return
        except OSError:
            pass
        os.close(self.input)
        self.input = None

    def send_what_is_due(self):
        sends = self.it["sends"]
        due = len(READY.findall(self.output.kept)) + len(self.stops)
        while self.sent < len(sends) and self.status is None:
            send = sends[self.sent]
            after = base64.b64decode(send["after"])
            if not (re.search(after, self.output.kept[self.written :]) if after else self.sent < due):
                return
            self.sent += 1
            self.written = len(self.output.kept)
            if send["resize"]:
                fcntl.ioctl(self.input, termios.TIOCSWINSZ, struct.pack("4H", *send["resize"], 0, 0))
            if send["typed"]:
                os.write(self.input, base64.b64decode(send["typed"]))
            for number in send["signals"]:
                (os.killpg if send["to_group"] else os.kill)(self.pid, number)

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid and os.WIFSTOPPED(status):
                # What a shell's `fg` does.
                self.stops.append(signal.Signals(os.WSTOPSIG(status)).name)
                os.killpg(self.pid, signal.SIGCONT)
            elif pid == self.pid:
                self.status = status

    def streams(self):
        return [stream for stream in (self.output, self.errors) if stream.open]

    def wait_for_event(self, wake):
        """Waits for the next event and handles it."""
        reading = [stream.fd for stream in self.streams()]
        writing = [self.input] if self.given and self.input is not None else []
        select.select(reading + [wake], writing, [], 0.1)
        try:
            os.read(wake, 4096)
        except BlockingIOError:
            pass
        self.feed()
        for stream in self.streams():
            while stream.read_available():
                pass
        self.reap()
        self.send_what_is_due()

    def wait_for_end(self):
        """Waits for the end of the command. Returns False if it does not end in time."""
        wake, waker = os.pipe()
        for fd in (wake, waker):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        deadline = time.monotonic() + self.it["timeout"]
        while self.status is None and time.monotonic() < deadline:
            self.wait_for_event(wake)
        ended = self.status is not None
        # A terminal stays open as long as this process holds its other end.
        deadline = time.monotonic() + self.it["patience"]
        while self.streams() and time.monotonic() < deadline and ended:
            self.wait_for_event(wake)
        return ended

    def leftovers(self):
        """The processes and cgroups that are left, once that is what the program leaves alone, or for certain something
        else."""
        folder = os.path.join(self.it["antifreeze"], "runs")
        runs = os.listdir(folder) if os.path.isdir(folder) else []
        deadline = time.monotonic() + self.it["patience"]
        while True:
            self.reap()
            names, cgroups = sorted(descendants().values()), cgroups_of(runs)
            as_expected = names == sorted(self.it["leaves"]) and not cgroups
            if as_expected or self.status is None or time.monotonic() > deadline:
                return names, cgroups
            time.sleep(0.02)

    def end_all(self):
        """Kills the descendants of this process until there are none."""
        while True:
            left = descendants()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.reap()
            time.sleep(0.01)


def status_of(status):
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"killed by signal {-code}"


def main():
    specification_path, result_path = sys.argv[1:]
    with open(specification_path) as file:
        specification = json.load(file)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.setsid()
    namespace = Namespace(libc, specification["private"], specification["root"])
    run = Run(specification)
    run.start()
    ended = run.wait_for_end()
    open_at_end = [name for name, it in (("stdout", run.output), ("stderr", run.errors)) if it.open]
    leftovers, cgroups = run.leftovers()
    result = {
        "status": status_of(run.status) if ended else "does not end",
        "stops": run.stops,
        "pid": run.pid,
        "session": os.getpid(),
        "open": open_at_end,
        "leftovers": leftovers,
        "cgroups": cgroups,
        "namespace": namespace.leftovers(),
    }
    run.end_all()
    for cgroup in cgroups:
        # What the guard would have removed, had it not just been killed.
        try:
            os.rmdir(cgroup)
        except OSError:
            pass
    result["stdout"], result["stderr"] = run.output.result(), run.errors.result()
    with open(result_path, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
