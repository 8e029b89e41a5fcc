# cause: distributed-failure
# needs: torch
import datetime

import torch.distributed as distributed

distributed.init_process_group(
    "gloo", init_method="tcp://127.0.0.1:29617", rank=0, world_size=2, timeout=datetime.timedelta(seconds=5)
)
