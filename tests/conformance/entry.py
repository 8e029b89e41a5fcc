"""What an entry of the table says about a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class KnownDifference:
    """An aspect that differs under antifreeze, the value that it has there, and the reason.

    The entry fails when the aspect does not differ any more, and when it differs in another way.
    """

    #: The aspect as the suite prints it; `*` stands for any text.
    aspect: str
    #: A regular expression for the whole value under antifreeze.
    under: str
    reason: str
    #: The difference is there only without --quiet.
    only_loud: bool = False


@dataclass(frozen=True)
class Send:
    """Signals, typed bytes or a new size of the terminal. The first `Send` of an entry is due when the program has
    written a line that says `ready` and nothing else, each further one at the next such line, or when the program was
    stopped and has been continued. One with `after` is due when that was written since the one before.
    """

    #: Names of signals, sent one directly after the other.
    signals: Tuple[str, ...] = ()
    #: What is typed at the terminal.
    typed: bytes = b""
    #: Rows and columns that the terminal gets.
    resize: Optional[Tuple[int, int]] = None
    #: A regular expression for what the program writes before.
    after: bytes = b""
    #: The signals are sent to the process group instead of the process that was started.
    to_group: bool = False


@dataclass(frozen=True)
class Entry:
    """One program, how it is run, and what is known to differ under antifreeze."""

    name: str
    #: The program and its arguments, found on PATH.
    command: Tuple[str, ...]
    #: What has to be installed: a program on PATH, `file PATH`, `module NAME` of the Python with the frameworks, or
    #: `root`.
    needs: Tuple[str, ...] = ()
    #: A command that starts the program, or antifreeze: `nohup`, `env -i`, a shell with redirections.
    around: Tuple[str, ...] = ()
    #: Files of `programs/` that are copied into the working folder.
    brings: Tuple[str, ...] = ()
    #: Environment variables besides the usual ones; None removes one.
    env: Mapping[str, Optional[str]] = field(default_factory=dict)
    #: The content of standard input; None is /dev/null.
    stdin: Optional[bytes] = None
    #: Standard input, output and error are a terminal, which is the controlling one.
    terminal: bool = False
    #: Standard output and standard error are one pipe, which antifreeze's lines go to as well.
    one_output: bool = False
    sends: Tuple[Send, ...] = ()
    #: Names of the processes that the program leaves behind when it is run alone.
    leaves: Tuple[str, ...] = ()
    #: The program prints one fact a line, `name: value`, and each is an aspect.
    facts: bool = False
    #: The owner of the folders of the run.
    owner: int = 0
    #: Regular expressions for text that changes from run to run, in standard output, standard error, and the names and
    #: contents of files.
    masks: Tuple[str, ...] = ()
    known: Tuple[KnownDifference, ...] = ()
    #: Also run without --quiet.
    loud: bool = True
    #: Takes several seconds: left out unless --all is given.
    heavy: bool = False
    #: Seconds after which the program counts as one that hangs.
    timeout: float = 120
    #: Seconds that the output may stay open, and processes and cgroups may stay, after the command has ended. Only an
    #: entry that is known to leave some waits that long.
    patience: float = 20
