# cause: user-exception
import time

time.sleep(1)
settings = {"lr": 0.1}
print(settings["momentum"])
