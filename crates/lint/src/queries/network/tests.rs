#![allow(clippy::unwrap_used)]

use super::*;
use crate::Dialect;
use crate::target_machine::TargetMachine;

/// Estimates the memory of the call of `model` in a text, for a batch of this shape.
fn needed(text: &str, lengths: &[f64]) -> Option<MemoryNeed> {
    let parsed = ruff_python_parser::parse_module(text).unwrap();
    let module = Module::analyze(
        text,
        Dialect::Python,
        parsed.syntax(),
        &TargetMachine::default(),
    );
    let call = module
        .calls()
        .iter()
        .find(|call| module.source(&*call.expr.func) == "model")
        .unwrap();
    estimate_step_memory(&module, &call.expr.func, call.context.frame, lengths)
}

#[test]
fn layers_in_a_row_keep_what_the_way_back_needs() {
    let text = "
from torch import nn, optim
model = nn.Sequential(nn.Linear(10, 100), nn.ReLU(), nn.Linear(100, 5)).cuda()
optimizer = optim.Adam(model.parameters())
model(x)
";
    let need = needed(text, &[1000.0, 10.0]).unwrap();
    assert_eq!(need.input, 1000.0 * 10.0 * 4.0);
    // The output of the ReLU and of the last layer; not the input of the ReLU.
    assert_eq!(need.activations, 1000.0 * (100.0 + 5.0) * 4.0);
    assert_eq!(
        need.weights,
        (10.0 * 100.0 + 100.0 + 100.0 * 5.0 + 5.0) * 16.0
    );
}

#[test]
fn a_class_is_followed_through_its_forward() {
    let text = "
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(width * 16 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = self.pool(x)
        return self.last(x.view(x.size(0), -1))

model = Net()
model(x)
";
    let need = needed(text, &[2.0, 3.0, 32.0, 32.0]).unwrap();
    let (wide, narrow) = (2.0 * 8.0 * 32.0 * 32.0, 2.0 * 8.0 * 16.0 * 16.0);
    // The output of the ReLU, the indices of the pool, the flat input of the last layer, and its
    // output.
    assert_eq!(
        need.activations,
        wide * 4.0 + narrow * 8.0 + narrow * 4.0 + 2.0 * 10.0 * 4.0
    );
}

#[test]
fn what_is_not_known_adds_nothing() {
    let text = "
from torch import nn
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), Strange(), nn.Linear(20, 1_000_000))
model(x)
";
    let need = needed(text, &[7.0, 10.0]).unwrap();
    assert_eq!(need.activations, 7.0 * 20.0 * 4.0);
    assert_eq!(needed("model = strange()\nmodel(x)\n", &[7.0, 10.0]), None);
}

#[test]
fn models_that_call_each_other_come_to_an_end() {
    let calls = "        x = self.inner(x)\n".repeat(40);
    let text = format!(
        "
from torch import nn

class Net(nn.Module):
    def __init__(self):
        self.inner = Net()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
{calls}        return x

model = Net()
model(x)
"
    );
    assert!(needed(&text, &[1.0, 4.0]).is_some());
}
