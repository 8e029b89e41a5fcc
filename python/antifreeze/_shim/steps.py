"""What the training is at, and how far it has come, from when things begin and end.

The phase is a stack: an optimizer may run forward and backward within its step, and backward may run
optimizers. How many steps were made is the most that any one optimizer has made, so that a GAN with two
optimizers makes one step a batch, and so does a model with an optimizer for each parameter. What an
optimizer calls of itself, as one that is built upon another does, is no step of its own.

A step is over where nothing is half done: when the next batch is waited for; without a loader, when the
outermost optimizer has ended.
"""

import weakref

from .page import BACKWARD, DATA, EVALUATION, FORWARD, NOTHING, OPTIMIZER, PHASE, SAVING, STEPS, UPDATES


class Steps:
    def __init__(self, slot, is_over):
        """`is_over` is called at the end of each step."""
        self._words, self._longs = slot.words, slot.longs
        self._is_over = is_over
        self._stack = []
        # What it is at when none of those is under way.
        self._ground = NOTHING
        self._has_loader = False
        self._has_stepped = False
        self._of_optimizer = weakref.WeakKeyDictionary()
        # Optimizers whose step is under way, outermost first.
        self._stepping = []
        # One of them failed half-way.
        self._is_torn = False
        # Steps that were made before this process began, and all.
        self._before = self.count = 0
        self.updates = 0

    def _enter(self, phase):
        self._stack.append(phase)
        self._words[PHASE] = phase

    def _leave(self, phase):
        """Ends the innermost of this phase, and what was left open within it."""
        stack = self._stack
        while stack:
            if stack.pop() == phase:
                break
        self._words[PHASE] = stack[-1] if stack else self._ground

    def data_begins(self):
        stack = self._stack
        if not stack or stack[-1] != DATA:
            # Nothing waits for data within a step: what is still open has failed.
            stack.clear()
            self._stepping.clear()
            self._has_loader = True
            if self._has_stepped:
                self._ends()
        self._enter(DATA)

    def data_ends(self, is_training):
        self._ground = FORWARD if is_training else EVALUATION
        self._leave(DATA)

    def backward_begins(self):
        self._enter(BACKWARD)

    def backward_ends(self):
        self._leave(BACKWARD)
        if not self._has_loader and not self._stack and self._has_stepped:
            self._ends()

    def optimizer_begins(self, optimizer):
        self._stepping.append(optimizer)
        self._enter(OPTIMIZER)

    def optimizer_ends(self, is_done=True):
        """Of the one that began last. Not done: it failed."""
        self._leave(OPTIMIZER)
        if not self._stepping:
            return
        optimizer = self._stepping.pop()
        self._is_torn = not is_done
        if not is_done or any(other is optimizer for other in self._stepping):
            return
        made = self._of_optimizer.get(optimizer, 0) + 1
        self._of_optimizer[optimizer] = made
        self.updates += 1
        self._longs[UPDATES // 2] = self.updates
        if self._before + made > self.count:
            self.count = self._before + made
            self._longs[STEPS // 2] = self.count
        self._has_stepped = True
        if not self._stack:
            self._ground = NOTHING if self._has_loader else FORWARD
            self._words[PHASE] = self._ground
            if not self._has_loader:
                self._ends()

    def batches_end(self, number):
        """So many batches of a loop that is not ours to look into."""
        self.count += number
        self.updates = self.count
        self._longs[STEPS // 2] = self._longs[UPDATES // 2] = self.count
        self._ends()

    def go_on_from(self, step):
        self._before = self.count = step

    def evaluation_begins(self):
        self._ground = EVALUATION
        self._words[PHASE] = EVALUATION

    def evaluation_ends(self):
        self._ground = NOTHING
        self._words[PHASE] = NOTHING

    def optimizers(self):
        """Those that have made a step, and are still there."""
        return list(self._of_optimizer)

    def write_to(self, slot):
        """Says from now on there what it is at."""
        self._words, self._longs = slot.words, slot.longs

    def saving_begins(self):
        self._enter(SAVING)

    def saving_ends(self):
        self._leave(SAVING)

    def is_whole(self):
        """What is trained is as the last step left it: no optimizer is, or was left, in the middle of one."""
        return not self._stepping and not self._is_torn

    def is_saving(self):
        return SAVING in self._stack

    def _ends(self):
        self._has_stepped = False
        self._is_over()
