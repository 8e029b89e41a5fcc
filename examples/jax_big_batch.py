"""JAX: the batch does not fit into memory; the script halves it and continues.

Under a budget JAX raises XLA's RESOURCE_EXHAUSTED as an ordinary exception. JAX computes
asynchronously, so the step waits for its result before it replaces the weights. Otherwise the
exception would come too late.

    antifreeze run --budget 900MB -- python jax_big_batch.py
"""

import jax
import jax.numpy as jnp

STEPS = 5


@jax.jit
def update(weights, images):
    def loss(weights):
        return jnp.mean(jnp.tanh(images @ weights) ** 2)

    value, slope = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * slope, value


def train_step(weights, batch):
    images = jnp.full((batch, 1024), 0.5)
    return jax.block_until_ready(update(weights, images))


def out_of_memory(error):
    return any(words in str(error) for words in ("RESOURCE_EXHAUSTED", "Out of memory"))


def main():
    weights = jax.random.normal(jax.random.key(1), (1024, 64)) * 0.01
    batch, step = 262_144, 0
    while step < STEPS:
        try:
            weights, loss = train_step(weights, batch)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            if not out_of_memory(error):
                raise
            batch //= 2
            print(f"too large for the memory: going on with a batch of {batch}", flush=True)
            continue
        step += 1
        print(f"step {step}: batch {batch}, loss {loss:.5f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
