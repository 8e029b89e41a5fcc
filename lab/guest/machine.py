"""The guest as a machine: its swap, its shared memory, its people, what memory it can spare."""

import os
import subprocess
import time

import people

SWAP_DISK = "/dev/vdc"
ZRAM = "/dev/zram0"
WORK = "/run/lab"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


def prepare(swap, shm):
    """`swap` is `disk`, `zram` (as large as memory, as distributions have it) or `none`."""
    if swap == "disk":
        swap_on(SWAP_DISK)
    elif swap == "zram":
        with open("/sys/block/zram0/disksize", "w") as file:
            file.write(str(meminfo("MemTotal")))
        swap_on(ZRAM)
    if shm is not None:
        subprocess.run(["mount", "-o", f"remount,size={shm}", "/dev/shm"], check=True)
    # As many distributions have it: nobody may look into a process but those it came from.
    if os.path.exists(YAMA):
        with open(YAMA, "w") as file:
            file.write("1")


def forget_files():
    """Whatever is cached of the disk."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def swap_on(device):
    subprocess.run(["mkswap", device], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["swapon", device], check=True)


def open_to_people():
    """The lab's folder is there, and everybody can write to it and be started."""
    os.makedirs(WORK, exist_ok=True)
    os.chmod(WORK, 0o1777)
    wait_for_people()


def wait_for_people(seconds=60):
    """Until the managers of both users answer; without systemd there are none."""
    if not people.HAS_SYSTEMD:
        return
    buses = [people.environment_of(user)["XDG_RUNTIME_DIR"] + "/bus" for user in ("u", "other")]
    until = time.monotonic() + seconds
    while not all(os.path.exists(bus) for bus in buses):
        if time.monotonic() > until:
            raise TimeoutError(f"no session bus after {seconds} s: {buses}")
        time.sleep(0.1)


def meminfo(name):
    """In bytes."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(f"/proc/meminfo has no {name}")
