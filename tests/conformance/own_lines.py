"""Which part of an output antifreeze has written. The rule:

- a line that begins with `antifreeze: `;
- the verdict: an empty line, the line `── antifreeze ───…`, and all that follows. It is printed when the command has
  ended.
"""

import re
from typing import Tuple

VERDICT = re.compile(r"^\r?\n(\x1b\[[0-9;]*m)?(──|--) antifreeze (──|--)".encode(), re.MULTILINE)
LINE = re.compile(rb"^antifreeze: [^\n]*\n?", re.MULTILINE)


def split_own_lines(text: bytes) -> Tuple[bytes, bytes]:
    """What the command wrote, and what antifreeze wrote."""
    found = VERDICT.search(text)
    end = found.start() if found else len(text)
    before, verdict = text[:end], text[end:]
    return LINE.sub(b"", before), b"".join(LINE.findall(before)) + verdict
