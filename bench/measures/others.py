"""Other programs that people use to watch memory, started as their users start them.

Python packages go into a virtual environment in the user's cache folder. earlyoom is only unpacked there,
because its package would start a service that kills processes. What is not available is left out, with
the reason.
"""

import os
import shutil
import subprocess
import sys
import time

PACKAGES = ["psutil", "nvitop", "glances"]

# The loop of a widely copied answer to "my computer freezes while I train".
PSUTIL_LOOP = """
import psutil, sys, time
rest = float(sys.argv[1])
while True:
    cpu = psutil.cpu_percent(interval=1)
    ram = psutil.virtual_memory().percent
    print(f"CPU Usage: {cpu:.1f}%, RAM Usage: {ram:.1f}%")
    if cpu > 95 or ram > 95:
        print("WARNING: High resource utilization detected!")
    time.sleep(rest)
"""

# Without a GPU the screen does not start, but the collector still watches machine and tree.
NVITOP_LOOP = """
import sys, time
from nvitop import Device, ResourceMetricCollector
try:
    devices = Device.all()
except Exception:
    devices = []
collector = ResourceMetricCollector(devices=devices, root_pids={int(sys.argv[1])}, interval=1.0)
with collector(tag="bench"):
    while True:
        time.sleep(1)
        collector.collect()
"""


class OtherProgram:
    """Another program that is running."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process.poll() is None

    def end(self):
        if self.is_running():
            self.process.kill()
        self.process.wait()


def find_commands(trainer):
    """Commands by name, and reasons by name of what is left out. `trainer` is the process to watch."""
    found, missing = {}, {}
    earlyoom = fetch_earlyoom()
    if earlyoom:
        found["earlyoom -r 0"] = [earlyoom, "-r", "0", "--dryrun"]
    else:
        missing["earlyoom"] = "it is not installed, and apt-get cannot fetch it"
    try:
        python = make_environment()
    except (OSError, subprocess.SubprocessError) as error:
        missing[", ".join(PACKAGES)] = f"they could not be installed: {error}"
        return found, missing
    found["psutil loop, every 6 s"] = [python, "-c", PSUTIL_LOOP, "5"]
    found["psutil loop, every 1 s"] = [python, "-c", PSUTIL_LOOP, "0"]
    found["nvitop's collector, every 1 s"] = [python, "-c", NVITOP_LOOP, str(trainer)]
    glances = os.path.join(os.path.dirname(python), "glances")
    found["glances --stdout, every 2 s"] = [
        python, glances, "--stdout", "cpu.total,mem.percent", "--disable-check-update",
    ]
    return found, missing


def cache_folder():
    users_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(users_cache, "antifreeze-bench")


def fetch_earlyoom():
    installed = shutil.which("earlyoom")
    unpacked = os.path.join(cache_folder(), "earlyoom")
    program = os.path.join(unpacked, "usr/bin/earlyoom")
    if installed or os.path.exists(program):
        return installed or program
    os.makedirs(unpacked, exist_ok=True)
    fetch = "apt-get download -q earlyoom && dpkg-deb -x earlyoom_*.deb . && rm earlyoom_*.deb"
    subprocess.run(fetch, shell=True, cwd=unpacked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program if os.path.exists(program) else None


def make_environment():
    """Returns the interpreter of a virtual environment with the packages."""
    folder = cache_folder()
    python = os.path.join(folder, "bin/python")
    have = [python, "-c", "import " + ", ".join(PACKAGES)]
    if not os.path.exists(python) or subprocess.run(have, stderr=subprocess.DEVNULL).returncode:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def start_programs(trainer, warm_up):
    """Starts all programs and waits, because their start is not compared."""
    found, missing = find_commands(trainer)
    running = [OtherProgram(name, command) for name, command in found.items()]
    time.sleep(warm_up)
    for other in list(running):
        if not other.is_running():
            missing[other.name] = f"it ended by itself with status {other.process.returncode}"
            running.remove(other)
    return running, missing
