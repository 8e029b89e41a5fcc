"""Iterations of a loop in which several optimizers step, as often as the loop has them step: five steps of a critic and
one of a generator, for instance.

From outside, an iteration begins where the optimizer that stepped first of all steps again after another one. Once two
iterations were alike, it is known with which step the next one ends.
"""

# Steps of one optimizer after which it is taken to step in iterations of its own, without the others.
MAX_STEPS = 100


class Iterations:
    def __init__(self, first, made):
        """`first`: the optimizer that stepped alone before the others did, and `made` how often."""
        # Of the iteration that is under way: which optimizers stepped in turn, each with how often.
        self._turns = [[first, made]]
        # Of the one before; None in the first one.
        self._expected = None
        self._is_complete = False
        # Iterations that are complete, and those before them in which the first optimizer stepped alone.
        self.completed = self.alone = 0

    def optimizer_ends(self, optimizer):
        turns = self._turns
        if turns[-1][0] == optimizer:
            turns[-1][1] += 1
        elif len(turns) > 1 and turns[0][0] == optimizer:
            self._end_iteration()
            turns = self._turns = [[optimizer, 1]]
        else:
            turns.append([optimizer, 1])
        if not self._is_complete and turns == self._expected:
            self._is_complete = True
            self.completed += 1

    def _end_iteration(self):
        """It is over at the latest where the next one begins."""
        if not self._is_complete:
            self.completed += 1
        if self.completed == 2 and self._expected is not None:
            (_, before), (_, now) = self._expected[0], self._turns[0]
            if before - now > MAX_STEPS:
                self.alone = (before - now) // now
        self._expected, self._is_complete = self._turns, False

    def is_within(self):
        """Whether an iteration has begun, and it is known which steps are still to come in it."""
        turns, expected = self._turns, self._expected
        if expected is None or self._is_complete or len(turns) > len(expected):
            return False
        *whole, (optimizer, made) = turns
        due, most = expected[len(whole)]
        return whole == expected[: len(whole)] and optimizer == due and made <= most
