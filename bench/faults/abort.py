# cause: native-crash
import os
import time

time.sleep(1)
os.abort()
