"""The host's side of the freeze lab: images, guests, cells of the matrix and their results."""

import os
import sys

LAB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPOSITORY = os.path.dirname(LAB)
# What scenarios and guards there are is written once, in the programs of the guest.
sys.path.insert(0, os.path.join(LAB, "guest"))
