# cause: native-crash
import ctypes
import time

time.sleep(1)
ctypes.string_at(0)
