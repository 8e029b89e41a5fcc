"""Real Lightning, Hugging Face's Trainer and Keras with our callbacks: what is trained is what would have been trained
without, in parts or whole; and what the guard asks to be saved is saved by the framework, and gone on from."""

import json
import os
import sys
import unittest

from support import Scene
from test_frameworks import QUIET, needs

# A place through which only so many items go at once, forward or backward; more have no memory.
NARROW = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import torch, antifreeze
torch.manual_seed(3)
refused = 0
def narrow(most, where):
    class Through(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            check(len(x), "forward")
            return x.clone()
        @staticmethod
        def backward(context, gradient):
            check(len(gradient), "backward")
            return gradient.clone()
    def check(number, there):
        global refused
        if there == where and number > most:
            refused += 1
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    return lambda x: Through.apply(x)
def told(model, **more):
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    print("TOLD", json.dumps({"state": state, "refused": refused, **more}))
"""
# Whole, and in parts.
WAYS = ({}, {"most": 5}, {"most": 5, "where": "backward"})
# What follows is done for each of the ways that are asked for.
EACH = """
for how in json.loads(sys.argv[1]):
    refused = 0
    torch.manual_seed(3)
    exec(body)
"""


def for_each(body):
    return f"{NARROW}body = {body!r}\n{EACH}"


LIGHTNING = for_each("""
import lightning
from lightning.pytorch.callbacks import Callback
import antifreeze.lightning
pinch = narrow(how.get("most", 10**9), how.get("where", "forward"))
seen = []
class Losses(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        seen.append((float(outputs["loss"]), outputs.get("more")))
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        if how.get("norm"):
            self.layers.insert(1, torch.nn.BatchNorm1d(16))
    def training_step(self, batch, index):
        x, y = batch
        loss = (self.layers[-1](pinch(self.layers[:-1](x))) - y).pow(2).mean()
        self.log("train_loss", loss)
        return {"loss": loss, "more": 5} if how.get("mapping") else loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)
torch.manual_seed(4)
data = torch.utils.data.TensorDataset(torch.randn(70, 6), torch.randn(70, 1))
callbacks = ([antifreeze.lightning.Callback(**how.get("options", {}))] if how["callback"] else []) + [Losses()]
trainer = lightning.Trainer(
    max_epochs=how.get("epochs", 2), callbacks=callbacks, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=how.get("accumulate", 1),
)
model = Model()
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=16), ckpt_path=antifreeze.last_save())
told(model, losses=seen, logged=float(trainer.callback_metrics["train_loss"]), steps=trainer.global_step)
""")

TRANSFORMERS = for_each("""
import transformers
import antifreeze.transformers
transformers.logging.set_verbosity_error()
pinch = narrow(how.get("most", 10**9), how.get("where", "forward"))
small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30)
off = dict(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)
rows = []
generator = torch.Generator().manual_seed(5)
for number in range(40):
    ids = torch.randint(1, 30, (8,), generator=generator)
    labels = ids.clone()
    labels[number % 7:] = -100 if number % 7 else ids[0]
    rows.append((ids, labels))
if how["kind"] == "classes":
    model = transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=3, **small, **off))
    data = [{"input_ids": ids, "labels": ids[0] % 3} for ids, _ in rows]
elif how["kind"] == "tokens":
    model = transformers.BertForTokenClassification(transformers.BertConfig(num_labels=30, **small, **off))
    data = [{"input_ids": ids, "labels": labels} for ids, labels in rows]
else:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**small))
    data = [{"input_ids": ids, "labels": labels} for ids, labels in rows]
model.get_input_embeddings().register_forward_hook(lambda module, inputs, output: pinch(output))
arguments = transformers.TrainingArguments(
    "trained", num_train_epochs=2, per_device_train_batch_size=8, report_to=[], disable_tqdm=True, use_cpu=True,
    logging_steps=1, save_strategy="no", learning_rate=1e-2, seed=6, optim="sgd" if how.get("sgd") else "adamw_torch",
    gradient_accumulation_steps=how.get("accumulate", 1),
)
trainer = transformers.Trainer(model, arguments, train_dataset=data)
trainer.remove_callback(transformers.PrinterCallback)
if how["callback"]:
    trainer.add_callback(antifreeze.transformers.Callback(trainer))
trainer.train(resume_from_checkpoint=antifreeze.last_save())
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
told(model, losses=losses, steps=trainer.state.global_step)
""")


class CallbackTest(unittest.TestCase):
    def train(self, text, asked=None, environment=None, **how):
        """Once, in a process of its own."""
        scene, ended, told = self.run_script(text, [how], asked, environment)
        return scene, ended, told[0] if told else None

    def train_each(self, text, *hows):
        """One after the other in one process, and none of them fails."""
        _, ended, told = self.run_script(text, hows)
        self.assertEqual(len(told), len(hows), ended)
        return told

    def run_script(self, text, hows, asked=None, environment=None):
        scene = Scene(self, **(asked or {}))
        path = scene.write("train.py", text)
        command = [sys.executable, path, json.dumps(hows)]
        ended = scene.run_command(command, 300, **QUIET, **(environment or {}))
        lines = [line[5:] for line in ended.stdout.split("\n") if line.startswith("TOLD ")]
        self.assertEqual(scene.said("fault"), [])
        return scene, ended, [json.loads(line) for line in lines]

    def assert_alike(self, one, other, places=4):
        self.assertEqual(one["steps"], other["steps"])
        for name, value in one["state"].items():
            for here, there in zip(flat(value), flat(other["state"][name])):
                self.assertAlmostEqual(here, there, places=places, msg=name)


def flat(value):
    return [value] if not isinstance(value, list) else [one for part in value for one in flat(part)]


@needs("lightning", "torch")
class LightningTest(CallbackTest):
    def test_in_parts_it_learns_the_same(self):
        for accumulate in (1, 2):
            hows = [{"accumulate": accumulate, "callback": True, **more} for more in WAYS]
            whole, *parts = self.train_each(LIGHTNING, {"accumulate": accumulate, "callback": False}, *hows)
            for more, told in zip(WAYS, parts):
                with self.subTest(accumulate=accumulate, **more):
                    self.assert_alike(told, whole)
                    self.assertEqual(bool(told["refused"]), bool(more))
                    for (here, _), (there, _) in zip(told["losses"], whole["losses"]):
                        # Lightning tells it as it was divided, for accumulation.
                        self.assertAlmostEqual(here, there * accumulate, places=4)

    def test_what_a_step_returns_and_logs_is_there(self):
        hows = ({"callback": with_it, "mapping": True} for with_it in (True, False))
        told, whole = self.train_each(LIGHTNING, *hows)
        self.assertEqual([more for _, more in told["losses"]], [5] * len(whole["losses"]))
        self.assertAlmostEqual(told["logged"], whole["logged"], places=5)

    def test_without_it_the_run_dies(self):
        _, ended, told = self.train(LIGHTNING, callback=False, most=5)
        self.assertIsNone(told)
        self.assertIn("can't allocate memory", ended.stderr)

    def test_batch_norm_is_refused_with_the_reason(self):
        _, ended, told = self.train(LIGHTNING, callback=True, most=5, norm=True)
        self.assertIsNone(told)
        self.assertIn("BatchNorm would learn from parts", ended.stderr)
        _, ended, told = self.train(LIGHTNING, callback=True, most=5, norm=True, options={"batch_norm": "allow"})
        self.assertIsNotNone(told, ended)

    def test_a_checkpoint_of_lightning_is_saved_and_gone_on_from(self):
        scene, ended, told = self.train(LIGHTNING, {"SAVE_ASKED": 1}, callback=True)
        self.assertIsNotNone(told, ended)
        [saved] = scene.said("saved")
        self.assertTrue(saved["path"].endswith(".ckpt"), saved)
        self.assertEqual(scene.said("plan")[0]["steps"], 10)
        again, ended, more = self.train(
            LIGHTNING, environment={"ANTIFREEZE_RESUME": saved["path"]}, callback=True
        )
        self.assertIsNotNone(more, ended)
        # In the middle of an epoch Lightning begins its loader anew, so that the rest is trained on other batches.
        self.assertEqual((more["steps"], len(more["losses"])), (told["steps"], len(told["losses"]) - 1))
        self.assertEqual(again.said("resumes")[0]["step"], 1)


@needs("transformers", "accelerate", "torch")
class TransformersTest(CallbackTest):
    def test_in_parts_it_learns_the_same(self):
        for kind in ("classes", "tokens", "language"):
            hows = [{"kind": kind, "sgd": True, "callback": True, **more} for more in WAYS]
            whole, *parts = self.train_each(TRANSFORMERS, {"kind": kind, "sgd": True, "callback": False}, *hows)
            for more, told in zip(WAYS, parts):
                with self.subTest(kind, **more):
                    self.assert_alike(told, whole)
                    self.assertEqual(bool(told["refused"]), bool(more))
                    for here, there in zip(told["losses"], whole["losses"]):
                        self.assertAlmostEqual(here, there, places=3)

    def test_batches_that_are_accumulated(self):
        for kind in ("classes", "tokens", "language"):
            how = {"kind": kind, "sgd": True, "accumulate": 2}
            whole, told = self.train_each(TRANSFORMERS, {**how, "callback": False}, {**how, "callback": True, "most": 3})
            with self.subTest(kind):
                self.assert_alike(told, whole)

    def test_a_checkpoint_of_the_trainer_is_saved_and_gone_on_from(self):
        scene, ended, told = self.train(TRANSFORMERS, {"SAVE_ASKED": 1}, callback=True, kind="classes")
        self.assertIsNotNone(told, ended)
        [saved] = scene.said("saved")
        self.assertEqual(os.path.basename(saved["path"]), "checkpoint-1")
        self.assertTrue(os.path.isdir(saved["path"]))
        self.assertEqual(scene.said("plan")[0]["steps"], 10)
        again, ended, more = self.train(
            TRANSFORMERS, environment={"ANTIFREEZE_RESUME": saved["path"]}, callback=True, kind="classes"
        )
        self.assertIsNotNone(more, ended)
        self.assert_alike(more, told)
        self.assertEqual(again.said("resumes")[0]["step"], 1)


@needs("keras", "tensorflow")
class KerasTest(CallbackTest):
    FIT = """
import sys, keras, numpy, antifreeze.keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x, y = numpy.random.rand(64, 8).astype("f"), numpy.random.rand(64, 1).astype("f")
model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[antifreeze.keras.Callback(save="last.keras")])
again = keras.models.load_model("last.keras")
print("TOLD", {"step": int(again.optimizer.iterations)}["step"])
"""

    def test_the_whole_model_is_saved_where_it_was_told_to(self):
        scene, ended, told = self.train(self.FIT, {"SAVE_ASKED": 1})
        self.assertEqual(told, 1, ended)
        [saved] = scene.said("saved")
        self.assertEqual(os.path.basename(saved["path"]), "last.keras")
        self.assertEqual(scene.said("plan")[0]["steps"], 16)


if __name__ == "__main__":
    unittest.main()
