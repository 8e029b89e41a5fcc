import time

import jax
import jax.numpy as jnp


@jax.jit
def update(weights, batch):
    gradient = jax.grad(lambda weights: jnp.mean((batch @ weights) ** 2))(weights)
    return weights - 0.1 * gradient, gradient


key = jax.random.PRNGKey(0)
weights = jax.random.normal(key, (1024, 2048))
gradients = {}
for step in range(120):
    time.sleep(0.05)
    key, part = jax.random.split(key)
    weights, gradient = update(weights, jax.random.normal(part, (32, 1024)))
    gradients[step] = gradient
    if step % 20 == 0:
        print("step", step, "norm", float(jnp.linalg.norm(gradients[step])), flush=True)
print("norm", float(jnp.linalg.norm(weights)))
