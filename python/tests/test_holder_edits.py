"""Changes to a script are applied to it, and the script is run again: it holds less, and its result is the same."""

import ast
import os
import tempfile
import textwrap
import unittest

import support  # noqa: F401, puts the package on sys.path
from antifreeze._shim import edits, holders


class Tensor:
    """Keeps all tensors that it was made of, as a graph does."""

    def __init__(self, value, parents=()):
        self.value, self.parents = value, parents

    def __add__(self, other):
        if not isinstance(other, Tensor):
            return Tensor(self.value + other, (self,))
        return Tensor(self.value + other.value, (self, other))

    __radd__ = __add__

    def detach(self):
        return Tensor(self.value)

    def depth(self):
        depth, level = 0, [self]
        while level:
            depth, level = depth + 1, [parent for tensor in level for parent in tensor.parents][:2]
        return depth


def has_graph(value):
    return isinstance(value, Tensor) and bool(value.parents)


class EditsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder, self._count = folder.name, 0

    def run_script(self, text):
        """(the file, the names that it leaves)."""
        self._count += 1
        path = os.path.join(self._folder, f"train{self._count}.py")
        with open(path, "w") as file:
            file.write(text)
        names = {"Tensor": Tensor}
        exec(compile(text, path, "exec"), names)
        return path, names

    def offered(self, text, name, value=None):
        """What is offered for a name of a script that has run."""
        path, names = self.run_script(text)
        value = eval(value or name, names)
        length = len(value) if hasattr(value, "__len__") else 0
        held = holders.Holding(path, "<module>", length, 10_000_000, 0, value)
        return names, edits.with_current_text(path, edits.suggest_edits(held, name, has_graph, 10_000_000))

    def repaired(self, text, name, value=None):
        """The names that a script leaves, before and after what is offered was done to it."""
        text = textwrap.dedent(text)
        before, changes = self.offered(text, name, value)
        self.assertTrue(changes, "nothing is offered")
        return before, self.run_script(apply(text, changes))[1], changes

    def refuses(self, text, name, value=None):
        self.assertEqual(self.offered(textwrap.dedent(text), name, value)[1], [])

    def test_of_a_list_whose_end_is_used_the_newest_remain(self):
        before, after, _ = self.repaired(
            """
            kept = []
            for step in range(100):
                kept.append(bytes([step]))
            result = kept[-3:]
            """,
            "kept",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertLess(len(after["kept"]), 50)

    def test_a_change_has_the_indentation_of_its_line(self):
        script = "kept = []\nfor step in range(100):\n\tkept.append(step)\n"
        [change] = self.offered(script, "kept")[1]
        self.assertEqual((change["code"], change["indent"]), ("del kept[:-20]", "\t"))

    def test_an_entry_of_a_dictionary_is_changed_whatever_is_done_to_other_entries(self):
        before, after, changes = self.repaired(
            """
            log = {"losses": [], "outputs": []}
            for step in range(100):
                log["losses"].append(step)
                log["outputs"].append(bytes([step]))
            result = sum(log["losses"]) / len(log["losses"])
            """,
            "log['outputs']",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertEqual((len(after["log"]["losses"]), changes[0]["line"]), (100, 5))
        self.assertLess(len(after["log"]["outputs"]), 50)

    def test_what_an_entry_of_a_long_name_is_needed_for_is_seen(self):
        key = 40 * "k"
        self.refuses(
            f"""
            log = {{"{key}": []}}
            for step in range(100):
                log["{key}"].append(bytes([step]))
            result = list(log["{key}"])
            """,
            f"log['{key}'"[:34] + "]",
            f"log['{key}']",
        )

    def test_an_entry_that_may_be_used_through_another_key_or_as_a_part_of_the_whole_remains(self):
        for use in ("sum(len(kept) for kept in log.values())", "[log[key][0] for key in log]", "list(log['outputs'])"):
            with self.subTest(use):
                self.refuses(
                    f"""
                    log = {{"losses": [], "outputs": []}}
                    for step in range(100):
                        log["losses"].append([step])
                        log["outputs"].append(bytes([step]))
                    result = {use}
                    """,
                    "log['outputs']",
                )

    def test_what_is_used_at_either_end_remains(self):
        before, after, _ = self.repaired(
            """
            kept = []
            for step in range(100):
                kept.append(step)
            result = kept[0], kept[-1]
            """,
            "kept",
        )
        self.assertEqual((before["result"], len(before["kept"])), (after["result"], 100))
        self.assertLess(len(after["kept"]), 50)

    def test_a_dictionary_of_lists_stays_one(self):
        before, after, changes = self.repaired(
            """
            import collections
            kept = collections.defaultdict(list)
            for step in range(100):
                kept["loss"].append(step)
                kept["step"].append(step)
            result = kept["loss"][-1]
            """,
            "kept['loss']",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertLess(len(after["kept"]["loss"]), 50)
        self.assertEqual(len(after["kept"]["step"]), 100)
        self.assertNotIn("deque", changes[0]["code"])

    def test_a_key_that_was_just_put_there_is_still_there(self):
        before, after, _ = self.repaired(
            """
            kept, result = {}, 0
            for step in range(100):
                kept[step] = bytes(10)
                result += len(kept[step])
            """,
            "kept",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertLess(len(after["kept"]), 50)

    def test_keys_that_may_be_old_are_not_let_go(self):
        self.refuses(
            """
            kept = {}
            for step in range(100):
                kept[step] = bytes(10)
            for step in range(100):
                result = kept[99 - step]
            """,
            "kept",
        )
        self.refuses(
            """
            kept = {}
            def put(step):
                kept[step] = bytes(10)
            for step in range(100):
                put(step)
            for step in range(100):
                result = kept[step]
            """,
            "kept",
        )

    def test_positions_that_are_not_known_are_not_let_go(self):
        self.refuses(
            """
            kept = []
            for step in range(100):
                kept.append((step, step))
            result = [kept[index][0] for index in range(50)]
            """,
            "kept",
        )

    def test_what_a_function_returns_is_followed_to_its_use(self):
        text = """
        def collect():
            kept, other = [], []
            def add(value):
                kept.append(value)
            return add, kept
        add, mine = collect()
        for step in range(100):
            add(step)
        result = {use}
        """
        before, after, _ = self.repaired(text.format(use="mine[-1]"), "kept", "mine")
        self.assertEqual(before["result"], after["result"])
        self.assertLess(len(after["mine"]), 50)
        self.refuses(text.format(use="sum(mine)"), "kept", "mine")

    def test_what_is_used_as_a_whole_is_not_let_go(self):
        self.refuses(
            """
            kept = []
            for step in range(100):
                kept.append(step)
            result = sum(kept)
            """,
            "kept",
        )

    def test_another_thing_of_the_same_name_does_not_use_it(self):
        text = """
        import random
        class Memory:
            def __init__(self):
                self.memory = []
            def push(self, value):
                self.memory.append(value)
            def sample(self, number):
                return random.sample(self.memory, number)
        class Agent:
            def __init__(self):
                self.memory = Memory()
        agent = Agent()
        for step in range(100):
            agent.memory.push(step)
        result = len(agent.memory.sample(8)){more}
        """
        before, after, _ = self.repaired(text.format(more=""), "self.memory.memory", "agent.memory.memory")
        self.assertEqual(before["result"], after["result"])
        self.assertLess(len(after["agent"].memory.memory), 50)
        self.refuses(text.format(more=" + agent.memory.memory.index(5)"), "self.memory.memory", "agent.memory.memory")

    def test_values_are_stored_without_their_graphs(self):
        before, after, _ = self.repaired(
            """
            kept = []
            state = Tensor(0)
            for step in range(100):
                state = state + Tensor(step)
                kept.append(state)
            result = kept[-1].value
            """,
            "kept",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertEqual(after["kept"][-1].depth(), 1)

    def test_a_sum_is_one_of_values(self):
        before, after, _ = self.repaired(
            """
            total = 0
            for step in range(100):
                loss = Tensor(step) + Tensor(1)
                total += loss
            result = total.value
            """,
            "total",
        )
        self.assertEqual(before["result"], after["result"])
        self.assertEqual(after["loss"].depth(), 2)

    def test_what_leads_to_a_backward_pass_keeps_its_graph(self):
        self.refuses(
            """
            def backward(self): pass
            Tensor.backward = backward
            total = 0
            for step in range(100):
                total += Tensor(step) + Tensor(1)
            total.backward()
            """,
            "total",
        )

    def test_a_dataset_remembers_fewer_samples(self):
        text = textwrap.dedent(
            """
            class Scans:
                def __init__(self):
                    self.cache = {}
                def __getitem__(self, index):
                    if index not in self.cache:
                        self.cache[index] = bytes([index])
                    return self.cache[index]
            scans = Scans()
            result = [scans[index] for index in range(100)]
            """
        )
        path, before = self.run_script(text)
        name, changes = edits.dataset_edits(path, "Scans", 8)
        after = self.run_script(apply(text, edits.with_current_text(path, changes)))[1]
        self.assertEqual((name, before["result"]), ("cache", after["result"]))
        self.assertEqual((len(before["scans"].cache), len(after["scans"].cache)), (100, 8))

    def test_a_dataset_that_needs_its_samples_later_keeps_them(self):
        path, _ = self.run_script(
            textwrap.dedent(
                """
                class Scans:
                    def __init__(self):
                        self.seen = {}
                    def __getitem__(self, index):
                        self.seen[index] = index
                        return index
                    def __len__(self):
                        return sum(self.seen.values())
                """
            )
        )
        self.assertEqual(edits.dataset_edits(path, "Scans", 8), (None, []))


class WholeSetTest(unittest.TestCase):
    def offered(self, text, line):
        """Whether the call of a model at a line of a script is one of its training."""
        return edits._runs_backward(ast.parse(textwrap.dedent(text)), line)

    def test_an_evaluation_after_the_loop_that_trains_does_not_train(self):
        text = """
        for epoch in epochs:
            for batch in batches:
                with tf.GradientTape() as tape:
                    loss = model(batch)
            logits = model(x_test)
        """
        self.assertTrue(self.offered(text, 5))
        self.assertFalse(self.offered(text, 6))
        self.assertTrue(self.offered("for batch in batches:\n    loss = model(batch)\n    loss.backward()\n", 2))


def apply(text, changes):
    lines = text.split("\n")
    # What comes after a statement is put there before the statement itself is replaced.
    for change in sorted(changes, key=lambda change: (-change["line"], change["action"])):
        first, last = change["line"] - 1, change["last_line"]
        old = lines[first:last]
        assert "\n".join(old).strip() == change["before"], change
        indent = old[0][: len(old[0]) - len(old[0].lstrip())]
        new = [indent + line for line in change["code"].split("\n")]
        lines[first:last] = {"replace": new, "before": new + old, "after": old + new}[change["action"]]
    return "\n".join(lines)


if __name__ == "__main__":
    unittest.main()
