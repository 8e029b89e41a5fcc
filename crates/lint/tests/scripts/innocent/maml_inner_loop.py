import torch
import torch.nn.functional as F
from torch.func import functional_call


def adapt(model, params, x, y, steps=5, rate=0.01):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - rate * g for (name, p), g in zip(params.items(), grads)}
    return params


def meta_train(model, task_batches, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for tasks in task_batches:
        optimizer.zero_grad()
        outer = 0.0
        for support, query in tasks:
            fast = adapt(model, dict(model.named_parameters()), *support)
            outer = outer + F.mse_loss(functional_call(model, fast, (query[0],)), query[1])
        (outer / len(tasks)).backward()
        optimizer.step()
