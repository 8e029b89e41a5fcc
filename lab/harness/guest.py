"""One guest: qemu, its disks, its console and the port on which conduct.py reports.

It runs without KVM, so that it works on any machine, and without a network. Guest time is real time.
"""

import json
import os
import socket
import subprocess
import time

SWAP_BYTES = 1 << 30
OUTPUT_BYTES = 64 << 20
# The emulated CPU is about thirty times slower than a real one. These are the limits of an SSD with 500 MB and
# 15,000 operations a second, divided by thirty.
DISK_BYTES_A_SECOND = 16_000_000
DISK_OPERATIONS_A_SECOND = 500


class Guest:
    """Its files are in `folder`. The root disk is an overlay, which is kept between two boots."""

    def __init__(self, folder, image):
        self._folder = folder
        self._image = image
        self._qemu = None
        self._read = 0
        self._rest = b""
        self.console = self.file("console")
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw",
             "-b", image.file("root.ext4"), self.file("root.qcow2")],
            check=True,
        )

    def file(self, name):
        return os.path.join(self._folder, name)

    def boot(self, memory):
        """Boots from the job disk in the file `job`. `memory` is in MB."""
        _make_sparse(self.file("swap"), SWAP_BYTES)
        _make_sparse(self.file("output"), OUTPUT_BYTES)
        _pad_to_sector(self.file("job"))
        # No message of an earlier boot may be read again.
        _make_sparse(self.file("port"), 0)
        self._read, self._rest = 0, b""
        self._qemu = subprocess.Popen(
            # Two features are turned off because they are slow on an emulated CPU; lab/README.md says why.
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm", "-smp", "2",
             "-m", str(memory), "-display", "none", "-nodefaults", "-nic", "none", "-no-reboot",
             "-kernel", self._image.file("vmlinuz"), "-initrd", self._image.file("initrd"),
             "-append", "console=ttyS0 quiet loglevel=4 mitigations=off oops=panic panic=-1 norandmaps "
             f"systemd.show_status=0 lab.init={self._image.init}",
             # Written through: data that the guest has synced must survive a power cut.
             *_disk("root", self.file("root.qcow2"), "qcow2", "writethrough"),
             *_disk("job", self.file("job"), "raw", "unsafe"),
             *_disk("swap", self.file("swap"), "raw", "unsafe"),
             *_disk("output", self.file("output"), "raw", "unsafe"),
             "-serial", f"file:{self.console}",
             "-qmp", f"unix:{self.file('qmp')},server=on,wait=off",
             "-device", "virtio-serial-pci", "-chardev", f"file,id=port,path={self.file('port')}",
             "-device", "virtserialport,chardev=port,name=lab"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )

    def messages(self):
        """The messages of conduct.py since the last call."""
        with open(self.file("port"), "rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return [json.loads(line) for line in lines]

    def is_up(self):
        return self._qemu.poll() is None

    def cut_power(self):
        self._qemu.kill()
        self._qemu.wait()

    def reset(self):
        """Presses the reset button; qemu ends instead of booting again."""
        self._send_qmp(("system_reset", {}))
        self._qemu.wait()

    def slow_disks(self):
        """Slows the disks in proportion to the emulated CPU."""
        limits = {name: 0 for name in ("bps_rd", "bps_wr", "iops_rd", "iops_wr")}
        limits |= {"bps": DISK_BYTES_A_SECOND, "iops": DISK_OPERATIONS_A_SECOND}
        self._send_qmp(
            *(("block_set_io_throttle", {"device": disk} | limits) for disk in ("root", "swap"))
        )

    def _send_qmp(self, *commands):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.file("qmp"))
            answers = monitor.makefile()
            answers.readline()
            for command, arguments in (("qmp_capabilities", {}), *commands):
                message = {"execute": command, "arguments": arguments}
                monitor.sendall(json.dumps(message).encode() + b"\n")
                answer = next(a for a in map(json.loads, answers) if "event" not in a)
                if "error" in answer:
                    raise RuntimeError(f"qemu: {command}: {answer['error']['desc']}")

    def wait(self, seconds):
        """True if the guest has powered off by itself."""
        until = time.monotonic() + seconds
        while self.is_up() and time.monotonic() < until:
            time.sleep(0.1)
        return not self.is_up()

    def end(self):
        if self._qemu is not None and self.is_up():
            self.cut_power()


def _disk(name, path, form, cache):
    return ["-drive", f"id={name},file={path},if=virtio,format={form},cache={cache}"]


def _make_sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def _pad_to_sector(path):
    """A disk consists of whole sectors; tar ignores the zeros."""
    os.truncate(path, -(-os.path.getsize(path) // 512) * 512)
