"""The size of a calm run's record, and the time to list the record of a day."""

import glob
import os
import re
import shutil
import struct
import subprocess
import time
import zlib

from .bench import REPOSITORY, GuardedRun, LeftOut
from .figure import Figure, at_most
from .proc import written_bytes
from .spread import median

TITLE = "The record"
PROCESSES = 10


def measure(bench):
    yield from measure_growth(bench)
    yield from measure_listing(bench)


def measure_growth(bench):
    with GuardedRun(bench, bench.trainer("tree.py", PROCESSES)) as run:
        # By then its processes are old enough to be sampled at the slow pace.
        time.sleep(bench.pick(20, 12))
        began, before, traffic = time.monotonic(), frame_bytes(run), written_bytes(run.guard)
        time.sleep(bench.pick(150, 8))
        taken, after = time.monotonic() - began, frame_bytes(run)
        traffic = written_bytes(run.guard) - traffic
    an_hour = 3600 / taken / 1e6
    remark = f"of frames, from {taken:.0f} s of a tree of {PROCESSES}"
    yield Figure("record, calm", (after - before) * an_hour, "MB/h", at_most(3), remark)
    yield Figure(
        "sent to the disk, calm", traffic * an_hour, "MB/h",
        remark="whole blocks of 4 KiB, written again as they fill, each durable at once",
    )


def frame_bytes(run):
    """Bytes of the intact frames in a run's record; the files themselves grow in steps. The layout of a frame is in
    crates/record/src/frame.rs."""
    total = 0
    for path in glob.glob(os.path.join(run.run_folder(), "record.*")):
        with open(path, "rb") as file:
            content = file.read()
        at = content.find(b"\xaf\xf1")
        while at >= 0:
            size = intact_frame_bytes(content, at)
            total += size
            at = content.find(b"\xaf\xf1", at + max(size, 1))
    return total


def intact_frame_bytes(content, at):
    """The size of the frame at this offset, or 0 if there is none."""
    if at + 17 > len(content):
        return 0
    end = at + 13 + struct.unpack_from("<H", content, at + 2)[0]
    checksum = content[end:end + 4]
    intact = checksum == struct.pack("<I", zlib.crc32(content[at:end]))
    return end + 4 - at if intact else 0


def measure_listing(bench):
    home = bench.folder()
    folder = os.path.join(home, "runs", "20200101-000000-0001")
    os.makedirs(folder)
    day_output = make_day(bench, folder)
    times = []
    for _ in range(bench.pick(20, 5)):
        began = time.perf_counter()
        listed = subprocess.run(
            [bench.program, "runs"], env=bench.environment(home), stdout=subprocess.PIPE, check=True
        )
        times.append((time.perf_counter() - began) * 1e3)
    if b"train.py" not in listed.stdout:
        raise RuntimeError("`antifreeze runs` does not list the day")
    size = sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*")))
    remark = f"{size / 1e6:.0f} MB of files; worst {max(times):.0f} of {len(times)}"
    yield Figure("`antifreeze runs` with a record of 24 hours", median(times), "ms", at_most(100), remark)
    rate = re.search(r"([\d.]+) MB an hour", day_output)
    if rate:
        yield Figure(
            "samples of a made-up calm day, before thinning", float(rate.group(1)), "MB/h",
            at_most(3), "crates/record/examples/day.rs",
        )


def make_day(bench, folder):
    """Runs the example that writes the record of a day, and returns its output. The example removes its files at the
    end; hard links, made while it writes, keep them."""
    if not shutil.which("cargo"):
        raise LeftOut("the record of a day, because there is no cargo to build the example that makes it")
    build = ["cargo", "build", "-q", "--release", "-p", "antifreeze-record", "--example", "day"]
    if subprocess.run(build, cwd=REPOSITORY).returncode:
        raise LeftOut("the record of a day, because the example that makes it does not build")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target"))
    temporary = bench.folder()
    example = subprocess.Popen(
        [os.path.join(target, "release/examples/day")],
        env={**os.environ, "TMPDIR": temporary}, stdout=subprocess.PIPE, text=True,
    )
    while example.poll() is None:
        files = [
            file for made in os.scandir(temporary) for file in glob.glob(f"{made.path}/record.*")
        ]
        if len(files) == 4:
            for file in files:
                os.link(file, os.path.join(folder, os.path.basename(file)))
            break
        time.sleep(0.01)
    output, _ = example.communicate()
    if len(os.listdir(folder)) != 4:
        raise LeftOut("the record of a day, because its files were gone before they could be kept")
    return output
