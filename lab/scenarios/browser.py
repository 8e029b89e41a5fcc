"""The neighbour: takes PERCENT of the memory within 10 seconds, uses it, and exits.

browser.py PERCENT
"""

import sys
import time

from memory import MB, available_megabytes, touch_pages, written_block

GROW_SECONDS = 10
WORK_SECONDS = 20
TABS = 60


def main():
    size = available_megabytes() * int(sys.argv[1]) // 100 * MB // TABS
    tabs = []
    began = time.monotonic()
    for opened in range(1, TABS + 1):
        tabs.append(written_block(size))
        time.sleep(max(0.0, began + GROW_SECONDS * opened / TABS - time.monotonic()))
    until = time.monotonic() + WORK_SECONDS
    while time.monotonic() < until:
        for tab in tabs:
            touch_pages(tab)
        time.sleep(0.2)


main()
