# cause: memory-leak
# budget: 200MB
import time

rows = []
while True:
    rows.extend({"step": len(rows), "value": str(number)} for number in range(3000))
    time.sleep(0.01)
