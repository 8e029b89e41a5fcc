# cause: killed-externally
# signal: KILL
import time

time.sleep(60)
