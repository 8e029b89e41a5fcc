import os
import sys

sys.stdout.flush()
for status in (0, 3):
    pid = os.fork()
    if pid == 0:
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
pid = os.posix_spawnp("sh", ["sh", "-c", "exit 12"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
# A grandchild outlives its parent for a moment and is read from to its end.
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(writing, b"from a grandchild\n")
    os._exit(0)
os.wait()
os.close(writing)
print(os.read(reading, 100), flush=True)
os.execvp("sh", ["sh", "-c", "echo the last program; exit 11"])
