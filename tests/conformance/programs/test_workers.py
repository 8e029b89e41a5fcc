import os

import pytest


@pytest.mark.parametrize("number", range(12))
def test_allocates(number):
    assert len(bytearray(number * 1_000_000)) == number * 1_000_000


def test_runs_in_a_worker():
    assert os.environ["PYTEST_XDIST_WORKER"]


def test_fails():
    assert 6 * 7 == 43
