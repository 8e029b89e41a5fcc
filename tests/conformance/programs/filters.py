"""Installs a seccomp filter that ends the process at one system call, and forks."""

import ctypes
import os
import platform
import struct
import sys

X86 = platform.machine() == "x86_64"
NUMBER = {"openat": 257 if X86 else 56, "prlimit64": 302 if X86 else 261}[sys.argv[1]]
SECCOMP = 317 if X86 else 277


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("statements", ctypes.c_void_p)]


def statement(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)


statements = ctypes.create_string_buffer(
    statement(0x20, 0, 0, 0)
    + statement(0x15, 0, 1, NUMBER)
    + statement(0x06, 0, 0, 0x80000000)
    + statement(0x06, 0, 0, 0x7FFF0000)
)
program = Program(4, ctypes.addressof(statements))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if sys.argv[2] == "prctl":
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
else:
    assert libc.syscall(SECCOMP, 1, 0, ctypes.byref(program)) == 0
child = os.fork()
if child == 0:
    bytearray(50_000_000)
    os._exit(4)
status = os.waitpid(child, 0)[1]
print("the child ended with", status, flush=True)
os._exit(5)
