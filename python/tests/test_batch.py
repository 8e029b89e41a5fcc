"""How batches of any make are cut, and which are not."""

import collections
import dataclasses
import unittest

from support import has, needs

HAS_TORCH = has("torch")
if HAS_TORCH:
    import torch
    from test_split import Narrow
    from torch import nn

    import antifreeze
    from antifreeze import _batch, _split_cache

Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass(frozen=True)
class Fields:
    x: object
    y: object


@needs("torch")
class CutTest(unittest.TestCase):
    def cut(self, batch, size):
        return list(_batch.parts(batch, _batch.length(batch), size))

    def test_how_many_items_there_are(self):
        image, row = torch.ones(3, 5, 5), torch.ones(8, 4)
        boxes = [{"boxes": torch.ones(number, 4)} for number in range(8)]
        for items, batch in [
            (8, row),
            (8, (row, torch.ones(8, 3))),
            (8, [row, torch.ones(8, 3)]),
            (8, {"x": row, "scale": torch.tensor(2.0), "name": "digits", "sizes": [1, 2, 3]}),
            (8, Pair(row, row)),
            (8, Fields(row, row)),
            (8, [image] * 8),
            (2, [image] * 2),
            (8, ([image] * 8, boxes)),
            (8, (tuple([image] * 8), tuple(boxes))),
            (8, {"images": [image] * 8, "labels": torch.ones(8)}),
            (3, [torch.ones(5, 2), torch.ones(6, 2), torch.ones(7, 2)]),
            (2, (torch.ones(2, 7), torch.ones(2, 7))),
            (2, [torch.ones(2, 7), torch.ones(2)]),
            (3, ["a", "b", "c"]),
            (3, {"text": ["a", "b", "c"], "ids": ["d", "e", "f"]}),
        ]:
            with self.subTest(items=items, batch=str(batch)[:60]):
                self.assertEqual(_batch.length(batch), items)

    def test_what_is_as_long_is_cut_with_it(self):
        x = torch.arange(4)
        for names in (["a", "b", "c", "d"], ("a", "b", "c", "d")):
            parts = self.cut({"x": x, "names": names, "classes": ["cat", "dog"], "name": "abcd"}, 2)
            self.assertEqual([list(part["names"]) for part in parts], [["a", "b"], ["c", "d"]])
            self.assertEqual([part["classes"] for part in parts], [["cat", "dog"]] * 2)
            self.assertEqual([part["name"] for part in parts], ["abcd"] * 2)

    def test_lists_of_items_are_cut_between_them(self):
        images = [torch.full((3, 2, 2), float(number)) for number in range(4)]
        first, second = self.cut((images, torch.arange(4)), 2)
        self.assertEqual([image[0, 0, 0].item() for image in first[0]], [0, 1])
        self.assertEqual([image.shape for image in second[0]], [(3, 2, 2)] * 2)

    def test_containers_stay_what_they_are(self):
        x = torch.ones(4)
        for batch in (
            collections.defaultdict(list, x=x), collections.OrderedDict(x=x), Pair(x, 1), Fields(x, 1)
        ):
            [first, second] = self.cut(batch, 2)
            self.assertIs(type(first), type(batch))
            self.assertEqual(len(first["x"] if hasattr(first, "keys") else first.x), 2)
        self.assertEqual(first.y, 1)

    def test_what_cannot_be_told_is_not_cut(self):
        for reason, batch in [
            ("tensors have \\[5, 8\\] items", {"x": torch.ones(8, 4), "mask": torch.ones(5, 5)}),
            ("a list of 2 tensors of length 2", [torch.ones(2, 7), torch.ones(2, 7)]),
            ("a tuple of 2 numbers", {"x": torch.ones(2, 7), "size": (224, 224)}),
            ("how to split a set", (torch.ones(2), {"a", "b"})),
            ("lists of lengths \\[2, 3\\]", {"text": ["a", "b"], "ids": [1, 2, 3]}),
            ("it has no tensors", object()),
        ]:
            with self.subTest(reason), self.assertRaisesRegex(_batch.CannotSplit, reason):
                self.cut(batch, 1)


@needs("torch")
class TakenTwiceTest(unittest.TestCase):
    def setUp(self):
        _split_cache._caches.clear()
        self.model = nn.Linear(4, 1)

    def test_a_batch_that_cannot_be_cut_is_taken_whole(self):
        narrow = Narrow(8)

        def forward(batch):
            return self.model(narrow.through(batch["x"])).sum(), 8

        batch = {"x": torch.ones(8, 4), "mask": torch.ones(5, 5)}
        antifreeze.step(forward, batch)
        narrow.most = 4
        with self.assertRaisesRegex(RuntimeError, "can't allocate memory .*tensors have \\[5, 8\\] items"):
            antifreeze.step(forward, batch)

    def test_what_takes_something_out_of_its_batch_finds_it_again(self):
        narrow, kept = Narrow(4), {"x": torch.ones(8, 4), "y": [torch.ones(8, 1)]}

        def forward(batch):
            y = batch["y"].pop()
            return (self.model(narrow.through(batch.pop("x"))) - y).sum(), len(y)

        for _ in range(2):
            antifreeze.step(forward, kept)
        self.assertEqual(narrow.refused, 1)
        self.assertEqual(sorted(kept), ["x", "y"])

    def test_what_changes_its_batch_in_place_is_not_repeated(self):
        narrow = Narrow(4)

        def forward(x):
            return self.model(narrow.through(x.div_(255))).sum(), len(x)

        with self.assertRaisesRegex(RuntimeError, "changed a tensor of the batch in place"):
            antifreeze.step(forward, torch.full((8, 4), 255.0))
        narrow.most = 8
        antifreeze.step(forward, torch.full((8, 4), 255.0))
        torch.testing.assert_close(self.model.weight.grad, torch.ones(1, 4))


if __name__ == "__main__":
    unittest.main()
