# cause: missing-dependency
import ctypes

ctypes.CDLL("liba_library_that_nobody_has.so.4")
