import pytest
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.inner(x))


@pytest.mark.parametrize("width", [1, 8, 64])
def test_shape(width):
    model = Residual(width)
    out = model(torch.randn(4, width))
    assert out.shape == (4, width)


def test_gradient_flows():
    model = Residual(8)
    model(torch.randn(2, 8)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_eval_is_deterministic():
    model = Residual(8).eval()
    x = torch.randn(3, 8)
    assert torch.equal(model(x), model(x))
