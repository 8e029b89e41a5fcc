"""Counts the iterations of a loop in which several optimizers step, for example five steps of a critic and one of a
generator.

An iteration begins when the optimizer that stepped first of all steps again after another one. After two equal
iterations it is known with which step the next one ends.
"""

# An optimizer that made more steps than this before the others began had iterations of its own.
MAX_STEPS = 100


class Iterations:
    def __init__(self, first, made):
        """`first` is the id of the optimizer that made `made` steps before another one stepped."""
        # The running iteration as a list of [optimizer, number of steps].
        self._turns = [[first, made]]
        # The previous iteration; None during the first one.
        self._expected = None
        self._is_complete = False
        # Complete iterations, and earlier ones in which the first optimizer stepped alone.
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
        """An iteration is over at the latest when the next one begins."""
        if not self._is_complete:
            self.completed += 1
        if self.completed == 2 and self._expected is not None:
            (_, before), (_, now) = self._expected[0], self._turns[0]
            if before - now > MAX_STEPS:
                self.alone = (before - now) // now
        self._expected, self._is_complete = self._turns, False

    def is_within(self):
        """Whether an iteration is running of which the remaining steps are known."""
        turns, expected = self._turns, self._expected
        if expected is None or self._is_complete or len(turns) > len(expected):
            return False
        *whole, (optimizer, made) = turns
        expected_optimizer, max_steps = expected[len(whole)]
        return whole == expected[: len(whole)] and optimizer == expected_optimizer and made <= max_steps
