import jax
import jax.numpy as jnp
import optax


def predict(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def train(params, batches, lr=1e-3, epochs=10):
    optimizer = optax.adam(lr)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(epochs):
        total = 0.0
        for x, y in batches:
            params, state, loss = step(params, state, x, y)
            total += loss
            losses.append(loss)
    return params, losses
