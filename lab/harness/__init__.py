"""The host's side of the freeze lab: images, guests, cells of the matrix and their results."""

import os
import sys

LAB = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPOSITORY = os.path.dirname(LAB)
# The guest's modules define the scenarios and guards.
sys.path.insert(0, os.path.join(LAB, "guest"))
