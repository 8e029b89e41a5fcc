# cause: killed-externally
# signal: TERM
import time

time.sleep(60)
