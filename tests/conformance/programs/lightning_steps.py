import logging

import lightning
import torch

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch).square().mean()
        print(index, f"{loss.item():.6f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(32, 8), batch_size=4)
trainer = lightning.Trainer(
    max_steps=5, accelerator="cpu", enable_progress_bar=False, logger=False, enable_model_summary=False
)
trainer.fit(Model(), loader)
print(sorted(trainer.checkpoint_callback.best_k_models) or "no checkpoint")
