"""Real PyTorch: steps are counted right, leaks are named, saves can be loaded, and scripts see nothing.

Needs an interpreter with torch; is left out where there is none.
"""

import os
import signal
import unittest

from support import Scene, needs

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""


@needs("torch")
class StepsTest(unittest.TestCase):
    def counted(self, text, **environment):
        scene = Scene(self)
        ended = scene.run(HEAD + text, **environment)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended)
        self.assertEqual(scene.said("fault"), [])
        [trainer] = scene.trainers()
        return trainer

    def test_a_plain_loop(self):
        trainer = self.counted("""
for x, y in loader:
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
""")
        self.assertEqual((trainer["steps"], trainer["batch"]), (16, 4))

    def test_two_optimizers(self):
        trainer = self.counted("""
critic = nn.Linear(1, 1)
other = torch.optim.Adam(critic.parameters())
for x, _ in loader:
    optimizer.zero_grad(); other.zero_grad()
    critic(model(x).detach()).mean().backward()
    other.step()
    critic(model(x)).mean().backward()
    optimizer.step()
""")
        self.assertEqual(trainer["steps"], 16)

    def test_an_optimizer_in_backward(self):
        trainer = self.counted("""
each = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}
def step(parameter):
    each[parameter].step()
    each[parameter].zero_grad()
for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
for x, y in loader:
    (model(x) - y).pow(2).mean().backward()
""")
        self.assertEqual(trainer["steps"], 16)

    def test_a_closure_and_a_subclass(self):
        trainer = self.counted("""
class Twice(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
optimizer = Twice(model.parameters(), lr=0.01)
for x, y in loader:
    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        return loss
    optimizer.step(closure)
""")
        self.assertEqual(trainer["steps"], 16)

    def test_accumulation_with_mixed_precision(self):
        trainer = self.counted("""
scaler = torch.amp.GradScaler("cpu")
for i, (x, y) in enumerate(loader):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (model(x) - y).pow(2).mean() / 4
    scaler.scale(loss).backward()
    if i % 4 == 3:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
""")
        self.assertEqual(trainer["steps"], 4)

    def test_workers_are_no_trainers(self):
        for start in ("fork", "spawn", "forkserver"):
            with self.subTest(start=start):
                # PyTorch does not wait for the threads of its queues. Python warns of a leaked semaphore if the
                # interpreter ends while such a thread removes one.
                trainer = self.counted(f"""
import threading
def main():
    loader = DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="{start}")
    for x, y in loader:
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
if __name__ == "__main__":
    main()
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join()
""")
                self.assertEqual(trainer["steps"], 16)

    def test_compiled_as_one_graph(self):
        # PyTorch itself warns of some versions of Python.
        trainer = self.counted("""
import warnings
warnings.simplefilter("ignore")
@torch.compile(fullgraph=True, backend="eager")
def loss_of(x, y):
    return (model(x) - y).pow(2).mean()
for x, y in loader:
    optimizer.zero_grad()
    loss_of(x, y).backward()
    optimizer.step()
""")
        self.assertEqual(trainer["steps"], 16)

    def test_what_is_only_counted_is_at_nothing_that_is_known(self):
        trainer = self.counted("""
from antifreeze._shim.trainer import get_trainer
def train():
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
train()
watch = get_trainer().next_check_delay.__self__
def rest(now, step_time):
    watch._stop_observing()
    return 1e6
get_trainer().next_check_delay = rest
get_trainer().steps.due = 0
train()
""")
        self.assertEqual((trainer["steps"], trainer["phase"]), (32, 0))

    STACKS = """
import os, signal
def waits():
    os.kill(os.getpid(), signal.SIGRTMIN + 9)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
waits()
"""

    def test_where_it_stands_is_written_when_it_is_asked(self):
        scene = Scene(self)
        ended = scene.run(HEAD + self.STACKS)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""), ended)
        [name] = [name for name in os.listdir(scene.run_folder) if name.startswith("stacks-")]
        with open(scene.run_folder + "/" + name) as file:
            written = file.read()
        self.assertIn("Current thread", written)
        self.assertIn(" in waits", written)

    def test_where_it_crashed_is_written(self):
        scene = Scene(self)
        crash = "def crashes():\n    __import__('ctypes').string_at(0)\ncrashes()\n"
        ended = scene.run(HEAD + crash)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (-signal.SIGSEGV, "", ""), ended)
        [name] = [name for name in os.listdir(scene.run_folder) if name.startswith("stacks-")]
        with open(scene.run_folder + "/" + name) as file:
            written = file.read()
        self.assertTrue(written.startswith("Fatal Python error: Segmentation fault"), written)
        self.assertIn(" in crashes", written)

    def test_a_script_that_wants_to_see_its_crashes_does(self):
        ended = Scene(self).run(HEAD + "__import__('ctypes').string_at(0)\n", PYTHONFAULTHANDLER="1")
        self.assertIn("Fatal Python error: Segmentation fault", ended.stderr)

    def test_a_script_keeps_a_signal_that_it_uses_itself(self):
        scene = Scene(self)
        own = "import signal\nsignal.signal(signal.SIGRTMIN + 9, lambda *_: print('mine'))\n"
        ended = scene.run(own + HEAD + self.STACKS)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "mine\n", ""), ended)
        self.assertFalse([name for name in os.listdir(scene.run_folder) if name.startswith("stacks-")])

    def test_without_a_loader(self):
        trainer = self.counted("""
for _ in range(5):
    model(torch.randn(4, 8)).mean().backward()
    optimizer.step()
""")
        self.assertEqual((trainer["steps"], trainer["batch"]), (5, 0))


@needs("torch")
class PressureTest(unittest.TestCase):
    LOOP = HEAD + """
import antifreeze
try:
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
except antifreeze.MemoryPressure:
    print("told to end")
"""

    def test_a_save_that_is_asked_for_can_be_loaded_and_gone_on_from(self):
        scene = Scene(self, SAVE_ASKED=1)
        ended = scene.run(self.LOOP)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""), ended)
        [saved] = scene.said("saved")
        self.assertEqual((saved["step"], [t["saved"] for t in scene.trainers()]), (1, [1]))
        again = Scene(self)
        ended = again.run(HEAD + """
import antifreeze
step = antifreeze.resume(model=model, optimizer=optimizer)
print(step, type(torch.load(__import__("os").environ["ANTIFREEZE_RESUME"])).__name__)
""", ANTIFREEZE_RESUME=saved["path"])
        self.assertEqual((ended.stdout, ended.stderr), ("1 dict\n", ""), ended)

    def test_the_traceback_of_a_run_that_is_asked_to_end_shows_no_frame_of_antifreeze(self):
        loop = self.LOOP.replace("try:", "if True:").partition("except")[0]
        ended = Scene(self, STOP_ASKED=1).run(loop)
        self.assertIn("    for x, y in loader:\nantifreeze.MemoryPressure: ", ended.stderr, ended)
        self.assertNotIn("_shim", ended.stderr, ended)

    def test_of_several_saves_the_newest_is_kept(self):
        scene = Scene(self)
        ended = scene.run(self.LOOP.replace("try:", """
from antifreeze._shim import page
from antifreeze._shim.trainer import get_trainer
try:""", 1).replace("            optimizer.step()", """            optimizer.step()
            get_trainer()._words[page.SAVE_ASKED] += 1""", 1))
        self.assertEqual(ended.stderr, "", ended)
        self.assertGreater(len(scene.said("saved")), 5)
        [kept] = os.listdir(scene.folder + "/saves")
        self.assertEqual(scene.folder + "/saves/" + kept, scene.said("saved")[-1]["path"])

    def test_what_resume_asks_for_is_saved_under_its_name_wherever_the_script_fails(self):
        scene = Scene(self)
        script = HEAD + """
import antifreeze
print("from", antifreeze.resume(model=model, optimizer=optimizer))
def fails(net, adam):
    raise MemoryError
def train(net, adam):
    for x, y in loader:
        adam.zero_grad()
        (net(x) - y).pow(2).mean().backward()
        adam.step()
    fails(net, adam)
train(model, optimizer)
"""
        ended = scene.run(script)
        self.assertEqual(ended.stdout, "from 0\n", ended)
        [saved] = scene.said("saved")
        self.assertEqual(saved["names"], ["model", "optimizer"])
        again = scene.run(script, ANTIFREEZE_RESUME_SAVES=os.path.dirname(saved["path"]))
        self.assertEqual(again.stdout, "from 16\n", again)

    def test_a_run_with_several_steps_of_a_critic_is_continued_from_its_iteration(self):
        script = HEAD + """
import antifreeze, sys
critic = nn.Linear(8, 1)
other = torch.optim.SGD(critic.parameters(), lr=0.01)
done = step = antifreeze.resume(model=model, critic=critic, optimizer=optimizer, other=other)
print("from", step)
def learn(one, its):
    its.zero_grad(); one(torch.randn(4, 8)).mean().backward(); its.step()
while step < done + 7:
    for number in range(5):
        learn(critic, other)
        if step == done + 6 and number == 2:
            raise MemoryError
    learn(model, optimizer)
    step += 1
"""
        scene = Scene(self)
        self.assertEqual(scene.run(script).stdout, "from 0\n")
        [saved] = scene.said("saved")
        self.assertEqual((saved["step"], os.path.basename(saved["path"])), (6, "step-6.pt"))
        again = scene.run(script, ANTIFREEZE_RESUME_SAVES=os.path.dirname(saved["path"]))
        self.assertEqual(again.stdout, "from 6\n", again)
        self.assertEqual(scene.said("saved")[-1]["step"], 12)

    def test_the_script_s_own_way_to_save_is_used(self):
        scene = Scene(self, SAVE_ASKED=1)
        own = """@antifreeze.on_checkpoint
def save():
    print('saves')
    torch.save(1, 'own.pt')
    return 'own.pt'
try:"""
        ended = scene.run(self.LOOP.replace("try:", own, 1))
        self.assertEqual(ended.stdout, "saves\n", ended)
        self.assertEqual(scene.said("saved")[0]["path"], scene.folder + "/own.pt")

    def test_a_stop_is_raised_at_the_end_of_a_step(self):
        scene = Scene(self, STOP_ASKED=1)
        ended = scene.run(self.LOOP)
        self.assertEqual((ended.stdout, ended.stderr), ("told to end\n", ""), ended)
        [trainer] = scene.trainers()
        self.assertEqual((trainer["steps"], trainer["stopped"]), (1, 1))

    def test_a_save_says_how_the_loop_begins_to_continue(self):
        scene = Scene(self, SAVE_ASKED=1)
        script = HEAD + """
import antifreeze
CALL
for number in range(5):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).mean().backward()
    optimizer.step()
"""
        ended = scene.run(script.replace("CALL", ""))
        [saved] = scene.said("saved")
        line = 2 + script.replace("CALL", "").split("\n").index("for number in range(5):") - 1
        self.assertEqual(
            (saved["loop"]["line"], saved["loop"]["code"]), (line, "for number in range(step, 5):"), ended
        )
        again = Scene(self, SAVE_ASKED=1)
        again.run(script.replace("CALL", "antifreeze.resume(model=model, optimizer=optimizer)"))
        self.assertNotIn("loop", again.said("saved")[0])

    def test_steps_since_the_last_save_are_saved_before_a_stop(self):
        scene = Scene(self)
        ended = scene.run(self.LOOP.replace("try:", """
from antifreeze._shim import page
from antifreeze._shim.trainer import get_trainer
made = 0
try:""", 1).replace("            optimizer.step()", """            made += 1
            asked = {2: page.SAVE_ASKED, 5: page.STOP_ASKED}.get(made)
            if asked is not None:
                get_trainer()._words[asked] += 1
            optimizer.step()""", 1))
        self.assertEqual((ended.stdout, ended.stderr), ("told to end\n", ""), ended)
        self.assertEqual([saved["step"] for saved in scene.said("saved")], [2, 5])
        self.assertEqual(os.listdir(scene.folder + "/saves"), ["step-5.pt"])
        [trainer] = scene.trainers()
        self.assertEqual((trainer["steps"], trainer["stopped"]), (5, 1))

    def test_a_stop_does_not_wait_for_a_save_that_takes_too_long_or_fails(self):
        for name, words in {"slow": {"SAVE_MS": 9000}, "failed": {"SAVE_FAILED": 1}}.items():
            with self.subTest(name):
                scene = Scene(self, STOP_ASKED=1, **words)
                self.assertEqual(scene.run(self.LOOP).stdout, "told to end\n")
                self.assertEqual((scene.said("saved"), scene.said("not-saved")), ([], []))

    def test_what_grows_is_named_with_its_line(self):
        for name, growing in {
            "history": "history.append((torch.randn(200_000), loss))",
            "total": "total = total + loss + torch.zeros(200_000).sum()",
            "keeper.kept": "keeper.kept.append(torch.randn(200_000))",
        }.items():
            with self.subTest(name=name):
                scene = Scene(self, RUNG=2)
                ended = scene.run(HEAD + f"""
import time
class Keeper:
    def __init__(self):
        self.kept = []
def main():
    history, total, keeper = [], 0, Keeper()
    for epoch in range(22):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            {growing}
            time.sleep(0.02)
main()
""")
                self.assertEqual(ended.stderr, "", ended)
                grown = [name for line in scene.said("holders") for name in line["names"]]
                self.assertIn(name, [one["name"] for one in grown])
                one = next(one for one in grown if one["name"] == name)
                with open(scene.folder + "/train.py") as file:
                    lines = file.read().split("\n")
                self.assertIn(growing, lines[one["lines"][0] - 1])

    def test_the_first_loss_that_is_no_number_is_told(self):
        scene = Scene(self)
        # Steps that take long enough for each loss to be looked at.
        slow = self.LOOP.replace("optimizer.zero_grad()", "__import__('time').sleep(0.05)")
        scene.run(slow.replace(".pow(2).mean()", ".pow(2).mean() / (0 if epoch == 1 else 1)"))
        [told] = scene.said("numbers")[:1]
        self.assertEqual((told["of"], told["first"], told["step"]), ("loss", "inf", 16))

    def test_out_of_memory_is_told_with_its_line(self):
        scene = Scene(self)
        ended = scene.run(self.LOOP + "torch.zeros(1 << 50)\n")
        self.assertEqual(ended.returncode, 1)
        [told] = scene.said("out-of-memory")
        self.assertTrue(told["file"].endswith("train.py"))


if __name__ == "__main__":
    unittest.main()
