"""The parts of `bench/guard`, in the order in which they run."""

from . import cpu, imports, output, record, sdk, shim, size, speed, start

PARTS = {
    "size": size,
    "cpu": cpu,
    "speed": speed,
    "start": start,
    "output": output,
    "record": record,
    "shim": shim,
    "sdk": sdk,
    "imports": imports,
}
