"""Draws on the screen, and ends with the key q."""
import curses


def main(window):
    window.addstr(0, 0, "press a key")
    while True:
        window.refresh()
        key = window.getch()
        if key == curses.KEY_RESIZE:
            window.erase()
            window.addstr(2, 0, "size %d %d" % window.getmaxyx())
        elif key == ord("q"):
            return
        else:
            window.addstr(1, 0, "key %d" % key)


print("one\ntwo")
curses.wrapper(main)
print("the end")
