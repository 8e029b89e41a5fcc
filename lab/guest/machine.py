"""The guest as a machine: its swap, its shared memory, its users, its available memory."""

import os
import subprocess
import time

import users

SWAP_DISK = "/dev/vdc"
ZRAM = "/dev/zram0"
WORK_FOLDER = "/run/lab"
PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


def prepare(swap, shm):
    """Sets up swap and /dev/shm. `swap` is `disk`, `zram` (as large as memory, a common default) or `none`."""
    if swap == "disk":
        enable_swap(SWAP_DISK)
    elif swap == "zram":
        with open("/sys/block/zram0/disksize", "w") as file:
            file.write(str(read_meminfo("MemTotal")))
        enable_swap(ZRAM)
    if shm is not None:
        subprocess.run(["mount", "-o", f"remount,size={shm}", "/dev/shm"], check=True)
    # The default of many distributions: only ancestors may ptrace a process.
    if os.path.exists(PTRACE_SCOPE):
        with open(PTRACE_SCOPE, "w") as file:
            file.write("1")


def drop_file_cache():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def enable_swap(device):
    subprocess.run(["mkswap", device], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["swapon", device], check=True)


def prepare_work_folder():
    """Makes a folder that every user can write to, and waits until programs of both users can be started."""
    os.makedirs(WORK_FOLDER, exist_ok=True)
    os.chmod(WORK_FOLDER, 0o1777)
    wait_for_user_managers()


def wait_for_user_managers(seconds=60):
    """Waits for the systemd managers of both users; without systemd there are none."""
    if not users.HAS_SYSTEMD:
        return
    buses = [users.environment_of(user)["XDG_RUNTIME_DIR"] + "/bus" for user in ("u", "other")]
    until = time.monotonic() + seconds
    while not all(os.path.exists(bus) for bus in buses):
        if time.monotonic() > until:
            raise TimeoutError(f"no session bus after {seconds} s: {buses}")
        time.sleep(0.1)


def read_meminfo(name):
    """A field of /proc/meminfo in bytes."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(f"/proc/meminfo has no {name}")
