"""Lets the tests find the bench."""

import os
import sys

sys.dont_write_bytecode = True
CHECK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [CHECK, os.path.dirname(CHECK)]
