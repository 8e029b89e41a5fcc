import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.set_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, inputs=None, labels=None):
        outputs = self.layer(inputs)
        return {"loss": torch.nn.functional.mse_loss(outputs, labels), "logits": outputs}


rows = [{"inputs": torch.ones(8) * number, "labels": torch.zeros(1)} for number in range(16)]
arguments = transformers.TrainingArguments(
    output_dir="out",
    max_steps=4,
    per_device_train_batch_size=4,
    report_to=[],
    disable_tqdm=True,
    save_steps=2,
    use_cpu=True,
)
result = transformers.Trainer(model=Model(), args=arguments, train_dataset=rows).train()
print(result.global_step, f"{result.training_loss:.4f}")
