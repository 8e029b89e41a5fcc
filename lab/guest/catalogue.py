"""The scenarios of the lab: which trainer runs, in which guest, and what a good ending is.

Data only. The host reads which guest to boot, and the guest reads what to start.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    """One way to run a machine out of a resource.

    `can` is what the trainer's code is able to do, and therefore what a guard must achieve:
    `catch` a refused allocation and continue, `save` when it is asked to end, `finish` because it
    fits into memory, or `any` if there is no requirement.
    """

    name: str
    summary: str
    program: tuple[str, ...]
    can: str
    flags: tuple[str, ...] = ()  # of `antifreeze run`; other guards have no equivalent
    memory: int = 512  # MB
    swap: str = "disk"  # or "zram", "none"
    seconds: int = 60  # time limit; the worst stall comes early
    setup: tuple[str, ...] | None = None  # command that prepares the disk before anything is measured
    shm: str | None = None  # size of /dev/shm; the kernel's default is half of memory
    neighbour: tuple[str, ...] | None = None
    ends: str = "normal"  # or "cut", "crash", "reset": how the guest dies
    flavour: str | None = None  # the only image that it runs in
    cause: str | None = None  # the cause that `antifreeze explain` should name
    measured: bool = True  # False: not part of the matrix, only for `antifreeze explain`


def _program(file, *arguments):
    return (f"/lab/scenarios/{file}", *arguments)


_LEAK = Scenario(
    name="leak",
    summary="Keeps 8 MB more each step; catches the error and continues with a smaller cache.",
    program=_program("leak.py"),
    can="catch",
    cause="memory-leak",
)

_NEIGHBOUR = Scenario(
    name="neighbour",
    summary="A steady trainer beside a program that grows until memory is short, and then exits.",
    program=_program("steady.py", "60"),
    can="finish",
    neighbour=_program("browser.py", "70"),
    seconds=150,
    cause="other-process",
)

# Both fit, but not together with the user's programs. Without swap on a disk, and with pages that do
# not compress, a larger neighbour would fit on no machine.
_SMALLER_NEIGHBOUR = replace(_NEIGHBOUR, neighbour=_program("browser.py", "36"))

# Long enough that the guest dies in the middle of the run.
_CUT = Scenario(
    name="cut",
    summary="The power is cut in mid-run.",
    program=_program("steady.py", "5000"),
    can="any",
    ends="cut",
    cause="machine-reset",
)

CATALOGUE = (
    _LEAK,
    Scenario(
        name="huge",
        summary="One allocation of three times the memory, which is then filled; halves it when refused.",
        program=_program("huge.py"),
        can="catch",
    ),
    Scenario(
        name="growing-batch",
        summary="Each epoch's batch is 1.4 times larger; returns to a smaller one when refused.",
        program=_program("growing_batch.py"),
        can="catch",
    ),
    Scenario(
        name="libraries",
        summary="Loads libraries whose data is four times the memory, and touches none of it.",
        program=_program("libraries.py"),
        can="finish",
    ),
    Scenario(
        name="worker-leak",
        summary="Three loader workers leak; when one is out of memory, the parent loads alone.",
        program=_program("worker_leak.py"),
        can="catch",
    ),
    Scenario(
        name="shared-memory",
        summary="Keeps batches in /dev/shm, where no process limit applies; saves when asked to end.",
        program=_program("shared_memory.py"),
        can="save",
        shm="200%",
    ),
    Scenario(
        name="fork-burst",
        summary="Six workers take 130 MB each at the same instant; those that are refused exit.",
        program=_program("fork_burst.py"),
        can="catch",
    ),
    Scenario(
        name="late-fill",
        summary="Maps 1.2 times the memory early and fills it late; saves when asked to end.",
        program=_program("late_fill.py"),
        can="save",
        seconds=120,
    ),
    Scenario(
        name="cold-data",
        summary="Fits only with swap; half of its data is not used after loading.",
        program=_program("cold_data.py"),
        can="finish",
        flags=("--allow-swap", "300M"),
        seconds=120,
    ),
    Scenario(
        name="page-cache",
        summary="Reads a mapped file of twice the memory at random positions for 30 seconds.",
        program=_program("page_cache.py"),
        setup=_program("page_cache.py", "make"),
        can="finish",
        seconds=150,
    ),
    _NEIGHBOUR,
    Scenario(
        name="deaf",
        summary="Leaks in shared mappings, ignores SIGTERM, saves nothing.",
        program=_program("deaf.py"),
        can="any",
    ),
    Scenario(
        name="saver",
        summary="Leaks small objects, catches nothing; saves on SIGUSR1 and when asked to end.",
        program=_program("saver.py"),
        can="save",
        flags=("--checkpoint-signal", "USR1"),
        seconds=90,
    ),
    Scenario(
        name="forker",
        summary="Forks a child in each step that takes some memory, while the parent leaks.",
        program=_program("forker.py"),
        can="catch",
        seconds=90,
    ),
    Scenario(
        name="oversubscribed",
        summary="Sixty-four busy processes for 20 seconds, on two cores.",
        program=_program("oversubscribed.py"),
        can="finish",
        seconds=90,
        cause="cpu-oversubscribed",
    ),
    Scenario(
        name="torch-leak",
        summary="PyTorch; keeps each loss with its graph, and plain numbers after an error.",
        program=_program("torch_leak.py"),
        can="catch",
        memory=2048,
        seconds=300,
        flavour="torch",
    ),
    replace(_LEAK, name="leak-zram", summary="The leak, with zram for swap.", swap="zram"),
    replace(_LEAK, name="leak-noswap", summary="The leak, without swap.", swap="none"),
    replace(
        _SMALLER_NEIGHBOUR, name="neighbour-zram", summary="A smaller neighbour, with zram.", swap="zram"
    ),
    replace(
        _SMALLER_NEIGHBOUR, name="neighbour-noswap", summary="A smaller neighbour, without swap.", swap="none"
    ),
    _CUT,
    replace(_CUT, name="crash", summary="The kernel crashes in mid-run.", ends="crash"),
    replace(_CUT, name="reset", summary="The machine is reset in mid-run.", ends="reset"),
    Scenario(
        name="hot-data",
        summary="Uses more than the memory again and again, with swap allowed.",
        program=_program("hot_data.py"),
        can="any",
        flags=("--allow-swap", "700M"),
        seconds=90,
        cause="swap-thrash",
        measured=False,
    ),
    Scenario(
        name="stands",
        summary="Two threads deadlock.",
        program=_program("stands.py"),
        can="any",
        seconds=95,
        cause="deadlock",
        measured=False,
    ),
)

SCENARIOS = {scenario.name: scenario for scenario in CATALOGUE}
