"""The scenarios of the lab: what is trained, in which guest, and what a good ending is.

Pure data, read on the host (which guest to boot) and in the guest (what to start there).
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    """One way to bring a machine into distress.

    `can` is what the trainer's own code is able to do, and so what a guard owes it:
    `catch` a refused request and go on, `save` when it is told to end, `finish` because it
    would fit if nobody interfered, or `any`, when nothing can be asked of it.
    """

    name: str
    summary: str
    program: tuple[str, ...]
    can: str
    flags: tuple[str, ...] = ()  # for `antifreeze run`; other guards have nothing to match
    memory: int = 512  # MB
    swap: str = "disk"  # or "zram", "none"
    seconds: int = 60  # the most it may take; a storm shows its worst soon
    setup: tuple[str, ...] | None = None  # what has to be there before anything is measured
    shm: str | None = None  # size of /dev/shm; the kernel's default is half of memory
    neighbour: tuple[str, ...] | None = None
    ends: str = "normal"  # or "cut", "crash", "reset": who ends the guest
    flavour: str | None = None  # the only image it runs in
    cause: str | None = None  # what `antifreeze explain` should say
    measured: bool = True  # or only there to be explained


def _program(file, *arguments):
    return (f"/lab/scenarios/{file}", *arguments)


_LEAK = Scenario(
    name="leak",
    summary="Keeps 8 MB more each step; catches the error and goes on with a smaller cache.",
    program=_program("leak.py"),
    can="catch",
    cause="memory-leak",
)

_NEIGHBOUR = Scenario(
    name="neighbour",
    summary="A steady trainer beside a program that grows until memory is short, and leaves.",
    program=_program("steady.py", "60"),
    can="finish",
    neighbour=_program("browser.py", "70"),
    seconds=150,
    cause="other-process",
)

# Both fit, but not beside what the person needs. Without a disk to swap to (and pages that do not
# compress) more than that cannot be had on any machine.
_SMALLER_NEIGHBOUR = replace(_NEIGHBOUR, neighbour=_program("browser.py", "36"))

# Long enough that whoever ends the guest does so in the middle of it.
_CUT = Scenario(
    name="cut",
    summary="The power goes in mid-run.",
    program=_program("steady.py", "5000"),
    can="any",
    ends="cut",
    cause="machine-reset",
)

CATALOGUE = (
    _LEAK,
    Scenario(
        name="huge",
        summary="One allocation of three times the memory, then filled; halves it when refused.",
        program=_program("huge.py"),
        can="catch",
    ),
    Scenario(
        name="growing-batch",
        summary="Each epoch's batch is 1.4 times larger; steps back to a smaller one when refused.",
        program=_program("growing_batch.py"),
        can="catch",
    ),
    Scenario(
        name="libraries",
        summary="Loads libraries with four times the memory as data, of which it touches nothing.",
        program=_program("libraries.py"),
        can="finish",
    ),
    Scenario(
        name="worker-leak",
        summary="Three loader workers leak; when one has run out of memory the parent loads alone.",
        program=_program("worker_leak.py"),
        can="catch",
    ),
    Scenario(
        name="shared-memory",
        summary="Keeps batches in /dev/shm, beyond any process limit; saves when told to end.",
        program=_program("shared_memory.py"),
        can="save",
        shm="200%",
    ),
    Scenario(
        name="fork-burst",
        summary="Six workers take 130 MB each at the same instant; those that are refused leave.",
        program=_program("fork_burst.py"),
        can="catch",
    ),
    Scenario(
        name="late-fill",
        summary="Maps 1.2 times the memory early and fills it late; saves when told to end.",
        program=_program("late_fill.py"),
        can="save",
        seconds=120,
    ),
    Scenario(
        name="cold-data",
        summary="Fits only with swap; half of its data is cold after loading.",
        program=_program("cold_data.py"),
        can="finish",
        flags=("--allow-swap", "300M"),
        seconds=120,
    ),
    Scenario(
        name="page-cache",
        summary="Reads a file of twice the memory at random through a mapping for 30 seconds.",
        program=_program("page_cache.py"),
        setup=_program("page_cache.py", "make"),
        can="finish",
        seconds=150,
    ),
    _NEIGHBOUR,
    Scenario(
        name="deaf",
        summary="Leaks where no limit on a process sees it, and ignores SIGTERM; saves nothing.",
        program=_program("deaf.py"),
        can="any",
    ),
    Scenario(
        name="saver",
        summary="Leaks in small objects, catches nothing; saves on SIGUSR1 and when told to end.",
        program=_program("saver.py"),
        can="save",
        flags=("--checkpoint-signal", "USR1"),
        seconds=90,
    ),
    Scenario(
        name="forker",
        summary="Forks a child each step that takes some memory, while the parent leaks.",
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
        summary="PyTorch; keeps each loss with its graph, and plain numbers once it was refused.",
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
        _SMALLER_NEIGHBOUR, name="neighbour-noswap", summary="And without swap.", swap="none"
    ),
    _CUT,
    replace(_CUT, name="crash", summary="The kernel crashes in mid-run.", ends="crash"),
    replace(_CUT, name="reset", summary="The machine is reset in mid-run.", ends="reset"),
    Scenario(
        name="hot-data",
        summary="Goes over more than the memory again and again, with swap for it.",
        program=_program("hot_data.py"),
        can="any",
        flags=("--allow-swap", "700M"),
        seconds=90,
        cause="swap-thrash",
        measured=False,
    ),
    Scenario(
        name="stands",
        summary="Two threads wait for each other.",
        program=_program("stands.py"),
        can="any",
        seconds=95,
        cause="deadlock",
        measured=False,
    ),
)

SCENARIOS = {scenario.name: scenario for scenario in CATALOGUE}
