"""Real Keras on TensorFlow, JAX, Lightning, Hugging Face's Trainer and torchrun: steps are counted right,
what is saved can be gone on from, and what cannot be saved is refused with a reason.

Needs an interpreter with the frameworks; each is left out where there is none.
"""

import json
import os
import sys
import time
import unittest

from support import QUIET, Scene, needs
from antifreeze._shim import checkpoints


class FrameworkTest(unittest.TestCase):
    def trained(self, text, **asked):
        scene = Scene(self, **asked)
        ended = scene.run(text, timeout=300, **QUIET)
        self.assertEqual(ended.returncode, 0, ended)
        self.assertEqual(scene.said("fault"), [])
        return scene, ended

    def steps(self, text):
        scene, _ = self.trained(text)
        return [trainer["steps"] for trainer in scene.trainers()]


KERAS = """
import keras, numpy
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
x, y = numpy.random.rand(64, 8).astype("f"), numpy.random.rand(64, 1).astype("f")
"""


@needs("jax", "lightning", "tensorflow", "transformers")
class LoadedTest(FrameworkTest):
    def test_frameworks_that_are_imported_are_told_with_their_versions(self):
        scene, _ = self.trained("import jax, lightning, tensorflow, transformers")
        loaded = {line["name"]: line["version"] for line in scene.said("loaded")}
        for name in ("numpy", "jax", "keras", "lightning", "tensorflow", "torch", "transformers"):
            self.assertTrue(loaded.get(name), loaded)


@needs("keras", "tensorflow")
class KerasTest(FrameworkTest):
    def test_fit(self):
        for how in ("", ", steps_per_execution=4", ", run_eagerly=True"):
            with self.subTest(how=how):
                steps = self.steps(KERAS + f"""
model.compile("adam", "mse"{how})
model.fit(x, y, batch_size=4, epochs=2, validation_split=0.5, verbose=0)
""")
                self.assertEqual(steps, [16])

    def test_a_loop_of_one_s_own(self):
        loop = KERAS + """
import tensorflow as tf
optimizer = keras.optimizers.Adam()
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
for _ in range(5):
    step(x, y)
"""
        self.assertEqual(self.steps(loop), [5])
        # What is compiled as a whole cannot be seen into, and nothing is said of it.
        compiled = loop.replace("def step", "@tf.function\ndef step")
        self.assertEqual(self.steps(compiled), [0])

    def test_a_save_can_be_gone_on_from(self):
        fit = KERAS + """
import antifreeze
model.compile("adam", "mse")
step = antifreeze.resume(model=model)
print("from", step)
"""
        scene, _ = self.trained(fit + "model.fit(x, y, batch_size=4, verbose=0)\n", SAVE_ASKED=1)
        [saved] = scene.said("saved")
        self.assertEqual(saved["step"], 1)
        again = Scene(self)
        ended = again.run(fit, ANTIFREEZE_RESUME=saved["path"], **QUIET)
        self.assertIn("from 1\n", ended.stdout, ended)
        self.assertEqual(again.said("resumes")[0]["step"], 1)

    def test_a_save_names_the_model_and_says_how_long_an_epoch_is(self):
        scene, _ = self.trained(KERAS + """
net = model
del model
net.compile("adam", "mse")
net.fit(x, y, batch_size=4, verbose=0)
""", SAVE_ASKED=1)
        [saved] = scene.said("saved")
        self.assertEqual(saved["names"], ["net"])
        self.assertEqual(saved["fit"], {"steps_in_epoch": 16})

    def test_a_stop_is_raised_at_the_end_of_a_batch(self):
        scene, ended = self.trained(KERAS + """
import antifreeze
model.compile("adam", "mse")
try:
    model.fit(x, y, batch_size=4, verbose=0)
except antifreeze.MemoryPressure:
    print("told to end")
""", STOP_ASKED=1)
        self.assertIn("told to end", ended.stdout, ended)

    def test_a_loss_that_is_no_number_is_told(self):
        scene, _ = self.trained(KERAS + """
model.compile("adam", "mse")
model.fit(x * float("nan"), y, batch_size=4, verbose=0)
""")
        self.assertEqual(scene.said("numbers")[0]["first"], "nan")


@needs("jax")
class JaxTest(FrameworkTest):
    LEAK = """
import os, signal, sys, time
import jax, jax.numpy as jnp
kept = []
def train():
    for step in range(8):
        kept.append(jnp.ones((256, 1024)) * step)
        time.sleep(0.7)
train()
"""

    def test_who_holds_the_memory_is_told_when_the_guard_asks(self):
        scene = Scene(self, RUNG=1)
        process = scene.start(self.LEAK, **QUIET)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.5)
            scene.ask_to_look()
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        looks = scene.said("holders")
        names = [name for look in looks for name in look["names"] if name["grown"] > 0]
        self.assertEqual({name["name"] for name in names}, {"kept"}, looks)
        self.assertEqual(names[0]["lines"], [7])

    def test_out_of_memory_is_told(self):
        scene = Scene(self)
        ended = scene.run("import jax.numpy as jnp\njnp.ones(1 << 50).block_until_ready()\n", **QUIET)
        self.assertEqual(ended.returncode, 1, ended)
        [told] = scene.said("out-of-memory")[-1:]
        self.assertEqual((os.path.basename(told["file"]), told["line"]), ("train.py", 2))

    OWN = """
import os, pickle, sys
import antifreeze, jax, jax.numpy as jnp
w, step = jnp.zeros(4), 0
@antifreeze.on_checkpoint
def save():
    with open("state.pkl", "wb") as file:
        pickle.dump((step, jax.device_get(w)), file)
    return "state.pkl"
def load(path):
    global w
    with open(path, "rb") as file:
        saved, w = pickle.load(file)
    if "fails-to-load" in sys.argv:
        jnp.ones(1 << 50)
    return saved
step = antifreeze.resume(load=load)
print("from", step)
begun = step
update = jax.jit(lambda w: w + 1)
while step < begun + 5:
    w = update(w)
    step += 1
    if "saves" in sys.argv and step == 3:
        save()
        os._exit(9)
assert w[0] == step
jnp.ones(1 << 50).block_until_ready()
"""

    def test_what_runs_out_of_memory_is_saved_by_the_script_and_continued(self):
        scene = Scene(self)
        for begins, ends in ((0, 5), (5, 10)):
            ended = scene.run(self.OWN, ANTIFREEZE_RESUME_SAVES=scene.folder + "/saves", **QUIET)
            self.assertEqual(ended.stdout, f"from {begins}\n", ended)
            self.assertEqual(scene.said("saved")[-1]["step"], ends)
            self.assertEqual(os.listdir(scene.folder + "/saves"), [f"step-{ends}.script.json"])
        # What was not loaded is not saved.
        said = scene.said("saved")
        again = {"ANTIFREEZE_RESUME_SAVES": scene.folder + "/saves", **QUIET}
        self.assertEqual(scene.run(self.OWN, "fails-to-load", **again).stdout, "")
        self.assertEqual(scene.said("saved"), said)
        self.assertEqual(scene.run(self.OWN, **again).stdout, "from 10\n")

    def test_what_the_script_saves_by_itself_is_continued(self):
        scene = Scene(self)
        ended = scene.run(self.OWN, "saves", ANTIFREEZE_RESUME_SAVES=scene.folder + "/saves", **QUIET)
        self.assertEqual((ended.returncode, ended.stdout), (9, ""), ended)
        ended = scene.run(self.OWN, ANTIFREEZE_RESUME_SAVES=scene.folder + "/saves", **QUIET)
        self.assertEqual(ended.stdout, "from 3\n", ended)


TORCH = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
"""


@needs("torch", "lightning")
class LightningTest(FrameworkTest):
    def test_fit(self):
        steps = self.steps(TORCH + """
import lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
    def training_step(self, batch, index):
        x, y = batch
        return (self.layer(x) - y).pow(2).mean()
    def validation_step(self, batch, index):
        self.training_step(batch, index)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
trainer = lightning.Trainer(
    max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, accelerator="cpu",
)
trainer.fit(Model(), DataLoader(data, batch_size=4), DataLoader(data, batch_size=8))
""")
        self.assertEqual(steps, [32])


@needs("torch", "transformers", "accelerate")
class TransformersTest(FrameworkTest):
    def test_trainer(self):
        steps = self.steps(TORCH + """
from transformers import Trainer, TrainingArguments
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
    def forward(self, x, labels):
        output = self.layer(x)
        return {"loss": (output - labels).pow(2).mean(), "logits": output}
rows = [{"x": x, "labels": y} for x, y in data]
arguments = TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2,
    save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
)
Trainer(Model(), arguments, train_dataset=rows).train()
""")
        self.assertEqual(steps, [16])


@needs("torch")
class RanksTest(FrameworkTest):
    HEAD = TORCH + """
import torch.distributed as dist
dist.init_process_group("gloo")
"""
    LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
# About once in a hundred times PyTorch aborts a rank at its exit, when it takes its threads down; without the shim too.
__import__("os")._exit(0)
"""

    def ranks(self, number, text, **asked):
        scene = Scene(self, **asked)
        script = scene.write("train.py", text)
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        ended = scene.run_command([*torchrun, f"--nproc-per-node={number}", script])
        self.assertEqual(ended.returncode, 0, ended)
        self.assertEqual(scene.said("fault"), [])
        return scene

    def test_two_ranks_count_alike_and_the_first_saves(self):
        model = "model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))\n"
        scene = self.ranks(2, self.HEAD + model + self.LOOP, SAVE_ASKED=1)
        trainers = [trainer for trainer in scene.trainers() if trainer["steps"]]
        self.assertEqual([trainer["steps"] for trainer in trainers], [16, 16])
        saved = scene.said("saved")
        self.assertEqual(sorted(line["path"] is None for line in saved), [False, True])

    ASK_RANK_1 = """
import os, antifreeze
from antifreeze._shim import page
from antifreeze._shim.trainer import get_trainer
def ask_rank_1(step):
    # As a guard does that asks one rank only.
    if step == 3 and os.environ["RANK"] == "1":
        get_trainer()._words[page.SAVE_ASKED] += 1
"""

    @needs("lightning")
    def test_lightning_s_ranks_save_together_when_one_is_asked(self):
        scene = self.ranks(2, TORCH + self.ASK_RANK_1 + """
import lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
    def training_step(self, batch, index):
        ask_rank_1(index)
        x, y = batch
        return (self.layer(x) - y).pow(2).mean()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
trainer = lightning.Trainer(
    max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    accelerator="cpu", devices=2, strategy="ddp", callbacks=[antifreeze.lightning.Callback()],
)
trainer.fit(Model(), DataLoader(data, batch_size=4))
os._exit(0)
""")
        self.assert_saved_together(scene, "step-4.ckpt")

    @needs("transformers", "accelerate")
    def test_the_trainer_s_ranks_save_together_when_one_is_asked(self):
        scene = self.ranks(2, TORCH + self.ASK_RANK_1 + """
from transformers import Trainer, TrainingArguments
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
    def forward(self, x, labels):
        ask_rank_1(trainer.state.global_step)
        output = self.layer(x)
        return {"loss": (output - labels).pow(2).mean(), "logits": output}
rows = [{"x": x, "labels": y} for x, y in data]
arguments = TrainingArguments(
    "out", num_train_epochs=1, per_device_train_batch_size=4, save_strategy="no", logging_strategy="no", report_to=[],
    disable_tqdm=True, use_cpu=True,
)
trainer = Trainer(Model(), arguments, train_dataset=rows)
trainer.add_callback(antifreeze.transformers.Callback(trainer))
trainer.train()
os._exit(0)
""")
        self.assert_saved_together(scene, "checkpoint-4")

    def assert_saved_together(self, scene, name):
        """Both ranks took part, rank 0 wrote the checkpoint, and it can be loaded."""
        paths = [line["path"] for line in scene.said("saved")]
        self.assertEqual(sorted(path is None for path in paths), [False, True], scene.said())
        [path] = [path for path in paths if path is not None]
        self.assertEqual(os.path.basename(path), name)
        self.assertEqual(checkpoints.newest([scene.folder + "/saves"], checkpoints.KINDS).path, path)

    def test_a_model_in_parts_is_refused_with_a_reason(self):
        model = """
from torch.distributed.fsdp import fully_shard
model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 1))
fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
"""
        scene = self.ranks(2, self.HEAD + model + self.LOOP, SAVE_ASKED=1)
        refused = scene.said("not-saved")
        self.assertEqual(len(refused), 2, scene.said())
        self.assertIn("@antifreeze.on_checkpoint", refused[0]["why"])


@needs("torch", "nbconvert", "ipykernel")
class NotebookTest(FrameworkTest):
    def test_cells_are_seen_like_a_script(self):
        cells = [TORCH, """
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
""", """
import time
for x, y in DataLoader(data, batch_size=4):
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
    kept.append(torch.randn(200_000))
    time.sleep(0.2)
"""]
        notebook = {
            "cells": [
                {"cell_type": "code", "execution_count": None, "id": str(number), "metadata": {}, "outputs": [],
                 "source": source}
                for number, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
            "nbformat": 4, "nbformat_minor": 5,
        }
        scene = Scene(self, RUNG=2)
        path = scene.write("train.ipynb", json.dumps(notebook))
        convert = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", path]
        ended = scene.run_command(convert)
        self.assertEqual(ended.returncode, 0, ended)
        self.assertEqual(scene.said("fault"), [])
        self.assertEqual([trainer["steps"] for trainer in scene.trainers() if trainer["steps"]], [16])
        names = [name for look in scene.said("holders") for name in look["names"] if name["grown"] > 0]
        self.assertEqual((names[-1]["name"], names[-1]["lines"]), ("kept", [5]))


if __name__ == "__main__":
    unittest.main()
