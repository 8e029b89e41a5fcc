"""Real Lightning, Hugging Face's Trainer and Keras with our callbacks: what is trained is what would have been trained
without, in parts or whole; and what the guard asks to be saved is saved by the framework, and gone on from."""

import json
import os
import subprocess
import sys
import unittest

from support import PYTHON, QUIET, Scene, needs

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
import lightning, torchmetrics
from lightning.pytorch.callbacks import Callback
pinch = narrow(how.get("most", 10**9), how.get("where", "forward"))
seen, before, rows = [], [], []
class Losses(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        seen.append((float(outputs["loss"]), outputs.get("more")))
        if "rows" in outputs:
            rows.append(torch.equal(outputs["rows"], batch[0][:, 0]))
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        if how.get("norm"):
            self.layers.insert(1, torch.nn.BatchNorm1d(16))
        self.metric = torchmetrics.MeanMetric()
    def training_step(self, batch, index):
        x, y = batch
        if how.get("log"):
            # Logged before the part that may be refused; `sized` has a batch size of its own.
            self.log("first", x[:, 0].mean(), on_step=True, on_epoch=True)
            self.log("sized", float(x[:, 1].mean()), on_step=False, on_epoch=True, batch_size=len(x))
            if self.training:
                self.metric.update(x[:, 2])
                self.log("metric", self.metric, on_step=False, on_epoch=True)
        loss = (self.layers[-1](pinch(self.layers[:-1](x))) - y).pow(2).mean()
        self.log("train_loss", loss, **how.get("log", {}))
        if how.get("log"):
            self.log_dict({"positive": (x > 0).sum().float()}, on_step=False, on_epoch=True, reduce_fx="sum")
        return {"loss": loss, "more": 5, "rows": x[:, 0]} if how.get("mapping") else loss
    def validation_step(self, batch, index):
        # Some do.
        self.log("validated", self.training_step(batch, index), on_epoch=True)
    def on_before_backward(self, loss):
        before.append(float(loss))
    def configure_optimizers(self):
        if how.get("lbfgs"):
            return torch.optim.LBFGS(self.parameters(), lr=0.1, max_iter=4)
        return torch.optim.Adam(self.parameters(), lr=0.01)
torch.manual_seed(4)
data = torch.utils.data.TensorDataset(torch.randn(70, 6), torch.randn(70, 1))
callbacks = ([antifreeze.lightning.Callback(**how.get("options", {}))] if how["callback"] else []) + [Losses()]
trainer = lightning.Trainer(
    max_epochs=how.get("epochs", 2), callbacks=callbacks, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=how.get("accumulate", 1),
    precision=how.get("precision", "32-true"),
)
model = Model()
loaders = [torch.utils.data.DataLoader(data, batch_size=16)]
if how.get("validates"):
    # Which is left whole.
    loaders.append(torch.utils.data.DataLoader(data, batch_size=5))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trainer.fit(model, *loaders, ckpt_path=antifreeze.last_save())
metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
warned = [str(one.message) for one in caught if "in parts" in str(one.message)]
told(model, losses=seen, metrics=metrics, steps=trainer.global_step, before=before, rows=rows, warned=warned)
""")

# With what goes wrong in between; a hook that is left is told.
AGAIN_LIGHTNING = NARROW + """
import lightning
from lightning.pytorch.callbacks import Callback
from antifreeze._shim import registry
most = 10**9
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        if len(batch) > most:
            raise RuntimeError("can't allocate memory")
        return self.layer(batch).pow(2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
class Raises(Callback):
    error = None
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if index == 1 and self.error:
            raise self.error
    def on_exception(self, trainer, module, error):
        # So that those after it never hear of it.
        raise error
raises, callback = Raises(), antifreeze.lightning.Callback()
model, told = Model(), []
data = torch.utils.data.DataLoader(torch.ones(32, 4), batch_size=8)
def fit(model, **more):
    trainer = lightning.Trainer(
        max_epochs=1, callbacks=[raises, callback], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, **more,
    )
    ran = ""
    try:
        trainer.fit(model, data)
        assert trainer.global_step == 4, trainer.global_step
        assert registry.checkpoint_owner is None or not registry.checkpoint_owner.is_running()
        left = {"training_step", "backward", "log"} & {*vars(model), *vars(trainer.strategy)}
        left -= {"training_step"} if "compiled" in more else set()
        assert not left, left
    except BaseException as error:
        ran = type(error).__name__
    told.append(ran)
for raises.error in (ValueError(), KeyboardInterrupt(), None, None):
    fit(model)
most = 3
fit(model)
most = 10**9
compiled = torch.compile(Model(), backend="eager")
trainer = lightning.Trainer(
    max_epochs=1, callbacks=[callback], accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(compiled, data)
told.append("compiled" if "training_step" in vars(compiled._orig_mod) else "")
# Nothing fits: the error is that there is no memory.
most = 0
raises.on_exception = lambda *more: None
try:
    trainer.fit_loop.max_epochs = 2
    trainer.fit(model, data)
except (RuntimeError, MemoryError) as error:
    told.append("MemoryError" if "not even one item fits" in str(error) else str(error))
print("TOLD", json.dumps(told))
"""

TRANSFORMERS = for_each("""
import transformers
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
if how.get("none_counts"):
    for row in data[8:16]:
        row["labels"] = torch.full_like(row["labels"], -100)
model.get_input_embeddings().register_forward_hook(lambda module, inputs, output: pinch(output))
class Own(transformers.Trainer):
    def training_step(self, model, inputs, *rest):
        if how["own"] == "twice":
            # As those do that look for what the model is weak in.
            inputs = self._prepare_inputs(inputs)
            self.accelerator.backward(0.5 * self.compute_loss(model, dict(inputs)))
            assert all(one.grad is not None for one in model.classifier.parameters())
            loss = self.compute_loss(model, dict(inputs))
            self.accelerator.backward(0.5 * loss)
            return loss.detach()
        return super().training_step(model, inputs, *rest)
    def compute_loss(self, model, inputs, return_outputs=False, **more):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels)
        return (loss, outputs) if return_outputs else loss
arguments = transformers.TrainingArguments(
    "trained", num_train_epochs=2, per_device_train_batch_size=how.get("batch", 8), report_to=[], disable_tqdm=True,
    use_cpu=True, eval_strategy="steps" if how.get("evaluates") else "no", eval_steps=2,
    torch_compile=how.get("compiles", False), torch_compile_backend="eager" if how.get("compiles") else None,
    logging_steps=1, save_strategy="no", learning_rate=1e-2, seed=6, optim="sgd" if how.get("sgd") else "adamw_torch",
    gradient_accumulation_steps=how.get("accumulate", 1),
)
kind = Own if how.get("own") else transformers.Trainer
trainer = kind(model, arguments, train_dataset=data, eval_dataset=data[:3])
trainer.remove_callback(transformers.PrinterCallback)
if how["callback"]:
    trainer.add_callback(antifreeze.transformers.Callback(trainer))
trainer.train(resume_from_checkpoint=antifreeze.last_save())
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
told(model, losses=losses, steps=trainer.state.global_step)
""")

AGAIN_TRANSFORMERS = NARROW + """
import transformers
from antifreeze._shim import registry
transformers.logging.set_verbosity_error()
small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30)
data = [{"input_ids": torch.full((4,), 1 + number % 29), "labels": torch.tensor(number % 2)} for number in range(40)]
most, interrupts, itself = 10**9, True, []
class Own(transformers.Trainer):
    def compute_loss(self, model, inputs, *rest, **more):
        global interrupts
        if len(inputs["labels"]) > most:
            raise RuntimeError("can't allocate memory")
        if interrupts and self.state.global_step == 2:
            itself.append(bool(registry.checkpoint_owner and registry.checkpoint_owner.is_running()))
            raise KeyboardInterrupt
        return super().compute_loss(model, inputs, *rest, **more)
def make():
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**small))
    arguments = transformers.TrainingArguments(
        "trained", num_train_epochs=1, per_device_train_batch_size=8, report_to=[], disable_tqdm=True, use_cpu=True,
        logging_strategy="no", save_strategy="no",
    )
    trainer = Own(model, arguments, train_dataset=data)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(antifreeze.transformers.Callback(trainer))
    return trainer
one = make()
was_interrupted, steps = False, []
try:
    one.train()
except KeyboardInterrupt:
    was_interrupted = True
itself.append(bool(registry.checkpoint_owner and registry.checkpoint_owner.is_running()))
interrupts = False
def train(trainer):
    trainer.train()
    assert "training_step" not in vars(trainer) and "backward" not in vars(trainer.accelerator)
    steps.append(trainer.state.global_step)
train(one)
most = 3
train(one)
train(make())
itself.append(bool(registry.checkpoint_owner and registry.checkpoint_owner.is_running()))
print("TOLD", json.dumps({"interrupted": was_interrupted, "saves_itself": itself, "steps": steps}))
"""


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
                        self.assertAlmostEqual(here, there, places=4)

    def test_what_a_step_returns_is_there_of_the_whole_batch(self):
        hows = [{"callback": True, "mapping": True, **more} for more in WAYS]
        for told in self.train_each(LIGHTNING, *hows):
            self.assertEqual([more for _, more in told["losses"]], [5] * 10)
            self.assertEqual(told["rows"], [True] * 10)

    def test_what_is_logged_is_of_the_whole_batch(self):
        for log in ({"on_step": True, "on_epoch": True}, {"on_step": False, "on_epoch": True, "reduce_fx": "sum"}):
            hows = [{"callback": True, "log": log, "validates": True, **more} for more in WAYS]
            whole, *parts = self.train_each(LIGHTNING, {**hows[0], "callback": False}, *hows)
            for more, told in zip(WAYS, parts):
                with self.subTest(log, **more):
                    self.assertEqual(told["metrics"].keys(), whole["metrics"].keys())
                    for name, value in whole["metrics"].items():
                        self.assertAlmostEqual(told["metrics"][name], value, places=4, msg=name)
                    # What is added up may be a count or a mean; only the script knows. Where backward fails first, the
                    # whole was logged.
                    self.assertEqual(len(told["warned"]), bool(more), told["warned"])

    def test_the_loss_that_lightning_sees_is_the_loss(self):
        hows = [{"callback": True, **more} for more in ({}, {"most": 5})]
        whole, *parts = self.train_each(LIGHTNING, {"callback": False}, *hows)
        for told in parts:
            self.assertEqual(len(told["before"]), len(whole["before"]))
            for here, there in zip(told["before"], whole["before"]):
                self.assertAlmostEqual(here, there, places=4)

    def test_an_optimizer_that_asks_for_the_loss_again(self):
        hows = [{"callback": True, "lbfgs": True, **more} for more in WAYS]
        whole, *parts = self.train_each(LIGHTNING, {"callback": False, "lbfgs": True}, *hows)
        for more, told in zip(WAYS, parts):
            with self.subTest(**more):
                self.assert_alike(told, whole, places=3)

    def test_mixed_precision(self):
        hows = [{"callback": True, "precision": "bf16-mixed", **more} for more in WAYS]
        whole, *parts = self.train_each(LIGHTNING, {**hows[0], "callback": False}, *hows)
        for more, told in zip(WAYS, parts):
            with self.subTest(**more):
                self.assert_alike(told, whole, places=2)

    def test_one_fit_after_another(self):
        _, ended, told = self.train(AGAIN_LIGHTNING)
        self.assertEqual(told, ["ValueError", "KeyboardInterrupt", "", "", "", "compiled", "MemoryError"], ended)

    def test_without_it_the_run_dies(self):
        _, ended, told = self.train(LIGHTNING, callback=False, most=5)
        self.assertIsNone(told)
        self.assertIn("can't allocate memory", ended.stderr)

    def test_batch_norm_is_refused_with_the_reason(self):
        _, ended, told = self.train(LIGHTNING, callback=True, most=5, norm=True)
        self.assertIsNone(told)
        self.assertIn("BatchNorm would use the statistics of each part", ended.stderr)
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

    def test_a_batch_in_which_no_label_counts(self):
        hows = ({"kind": "tokens", "batch": 1}, {"kind": "tokens"}, {"kind": "tokens", "most": 3}, {"kind": "language"})
        all_told = self.train_each(TRANSFORMERS, *({**how, "callback": True, "none_counts": True} for how in hows))
        self.assertEqual([told["steps"] for told in all_told], [80, 10, 10, 10])

    def test_a_trainer_with_steps_of_its_own(self):
        for own in ("loss", "twice"):
            how = {"kind": "classes", "sgd": True, "own": own, "evaluates": True}
            whole, told = self.train_each(TRANSFORMERS, {**how, "callback": False}, {**how, "callback": True})
            with self.subTest(own):
                self.assert_alike(told, whole)
        how["own"] = "loss"
        told, = self.train_each(TRANSFORMERS, {**how, "callback": True, "most": 3})
        self.assert_alike(told, whole)
        _, ended, told = self.train(TRANSFORMERS, **{**how, "own": "twice", "callback": True, "most": 3})
        self.assertIsNone(told)
        self.assertIn("can't allocate memory (antifreeze did not split it: its training_step", ended.stderr)

    def test_a_compiled_model(self):
        how = {"kind": "classes", "sgd": True, "compiles": True}
        whole, told = self.train_each(TRANSFORMERS, {**how, "callback": False}, {**how, "callback": True})
        self.assert_alike(told, whole)

    def test_one_training_after_another(self):
        _, ended, told = self.train(AGAIN_TRANSFORMERS, {"SAVE_ASKED": 1})
        expected = {"interrupted": True, "saves_itself": [True, False, False], "steps": [5, 5, 5]}
        self.assertEqual(told, expected, ended)

    def test_batches_that_are_accumulated(self):
        for kind in ("classes", "tokens", "language"):
            how = {"kind": kind, "sgd": True, "accumulate": 2}
            more = {"callback": True, "most": 3}
            whole, told = self.train_each(TRANSFORMERS, {**how, "callback": False}, {**how, **more})
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

    FAILS = """
import json, sys, torch, transformers, antifreeze.transformers
transformers.logging.set_verbosity_error()
[how] = json.loads(sys.argv[1])
class Fails(transformers.TrainerCallback):
    pass
def fail(self, args, state, control, **more):
    if state.global_step >= how["step"]:
        raise MemoryError
setattr(Fails, how["event"], fail)
small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30)
model = transformers.BertForSequenceClassification(transformers.BertConfig(**small))
data = [{"input_ids": torch.full((4,), 1 + number % 29), "labels": torch.tensor(number % 2)} for number in range(40)]
arguments = transformers.TrainingArguments(
    "trained", num_train_epochs=2, per_device_train_batch_size=8, report_to=[], disable_tqdm=True, use_cpu=True,
    logging_steps=1, save_strategy="no",
)
trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[Fails()])
trainer.remove_callback(transformers.PrinterCallback)
trainer.add_callback(antifreeze.transformers.Callback(trainer))
trainer.train()
"""

    def test_an_error_in_another_callback_that_ends_the_training_is_saved_after(self):
        # Where the model is changed and the step not counted, nothing is whole.
        for event, step, saves in (
            ("on_step_begin", 3, 3), ("on_step_end", 3, 3), ("on_log", 3, 3), ("on_epoch_end", 5, 5),
            ("on_train_end", 10, 10), ("on_optimizer_step", 3, None),
        ):
            with self.subTest(event):
                scene, ended, _ = self.train(self.FAILS, event=event, step=step)
                self.assertIn("MemoryError", ended.stderr)
                saved = [(os.path.basename(one["path"]), one["step"]) for one in scene.said("saved")]
                self.assertEqual(saved, [(f"checkpoint-{saves}", saves)] if saves else [], ended)


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

    AGAIN = """
import json, keras, numpy, antifreeze
from antifreeze._shim import registry
def make():
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model
x, y = numpy.random.rand(64, 8).astype("f"), numpy.random.rand(64, 1).astype("f")
class Interrupts(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise KeyboardInterrupt
class Asks(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            from antifreeze._shim.trainer import get_trainer
            import sys
            owner = registry.checkpoint_owner
            owner = owner if owner is not None and owner.is_running() else get_trainer()
            saved.append(owner.save(sys._getframe())["path"].split("/")[-1])
saved = []
def fit(model, *callbacks):
    try:
        model.fit(x, y, batch_size=8, verbose=0, callbacks=list(callbacks))
    except KeyboardInterrupt:
        pass
one, other = make(), make()
fit(one, antifreeze.keras.Callback(save="one.keras"), Interrupts())
fit(other, antifreeze.keras.Callback(save="other.keras"), Asks())
left = not registry.checkpoint_owner.is_running()
# The one that was interrupted is not trained any more: what is, is saved.
fit(one, antifreeze.keras.Callback(save="one.keras"), Interrupts())
fit(other, Asks())
# What the script names itself goes first, also when it does so later.
@antifreeze.on_checkpoint
def own():
    with open("own", "w") as file:
        file.write("saved")
    return "own"
fit(one, antifreeze.keras.Callback(save="one.keras"), Asks())
print("TOLD", json.dumps([saved, left, registry.on_checkpoint is own.__wrapped__]))
"""

    def test_one_fit_after_another(self):
        _, ended, told = self.train(self.AGAIN)
        saved, left, own = told or ([], None, None)
        self.assertEqual(saved[:1] + saved[2:], ["other.keras", "own"], ended)
        self.assertRegex(saved[1], r"step-\d+\.weights\.h5")
        self.assertEqual((left, own), (True, True))

    ENDS = """
import json, sys, keras, numpy, antifreeze.keras
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
x, y = numpy.random.rand(64, 8).astype("f"), numpy.random.rand(64, 1).astype("f")
class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 4:
            raise MemoryError if json.loads(sys.argv[1])[0]["fails"] else AssertionError("it went on")
callbacks = [Fails(), antifreeze.keras.Callback(save="last.keras")]
model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
"""

    def test_an_error_or_a_stop_that_ends_fit_is_saved_by_the_callback_alone(self):
        for fails, asked, step in ((True, {}, 5), (False, {"STOP_ASKED": 1}, 1)):
            with self.subTest(fails=fails):
                scene, ended, _ = self.train(self.ENDS, asked, fails=fails)
                self.assertIn("MemoryError" if fails else "MemoryPressure", ended.stderr)
                saved = [(os.path.basename(one["path"]), one["step"]) for one in scene.said("saved")]
                self.assertEqual(saved, [("last.keras", step)], ended)
                self.assertEqual(os.listdir(os.path.join(scene.folder, "saves")), [f"step-{step}.keras.json"])


class ModuleTest(unittest.TestCase):
    def says(self, text, expected):
        environment = {**os.environ, "PYTHONPATH": PYTHON}
        ran = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
        self.assertEqual(ran.stdout.strip(), expected, ran)

    def test_the_package_knows_them_without_importing_them(self):
        text = "import antifreeze, sys; print(sorted({'torch', 'keras', 'lightning', 'transformers'} & {*sys.modules}))"
        self.says(text, "[]")

    @needs("lightning", "torch")
    def test_they_are_there_when_they_are_named(self):
        text = "import antifreeze; print(antifreeze.lightning.Callback.__name__, 'nothing' in dir(antifreeze))"
        self.says(text, "Callback False")


if __name__ == "__main__":
    unittest.main()
