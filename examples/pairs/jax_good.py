"""JAX: one number of every step is kept.

    antifreeze run --budget 1GB -- python jax_good.py
"""

import jax
import jax.numpy as jnp

weights = jnp.ones((1024, 512))
gradient = jax.grad(lambda weights, inputs: jnp.mean((inputs @ weights) ** 2))
norms = []
for step in range(100):
    change = gradient(weights, jnp.ones((64, 1024)))
    weights = weights - 0.01 * change
    norms.append(float(jnp.linalg.norm(change)))
print("done")
