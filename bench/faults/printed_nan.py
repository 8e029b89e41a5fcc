# cause: numeric-nan
import math
import time

for epoch in range(5):
    loss = 1.0 / (epoch + 1) if epoch < 3 else math.nan
    print(f"epoch {epoch} loss: {loss}", flush=True)
    time.sleep(0.2)
