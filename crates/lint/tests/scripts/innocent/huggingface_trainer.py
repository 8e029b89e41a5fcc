import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor(self.class_weights, device=outputs.logits.device)
        loss = nn.functional.cross_entropy(outputs.logits, labels, weight=weight)
        return (loss, outputs) if return_outputs else loss


def main(model, train_set, eval_set):
    arguments = TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
        num_train_epochs=3,
    )
    trainer = WeightedTrainer(
        model, arguments, train_dataset=train_set, eval_dataset=eval_set, class_weights=[1.0, 3.0]
    )
    trainer.train()
    print(trainer.evaluate())
