"""JAX: the gradients of every step are kept.

    antifreeze run --budget 1GB -- python jax_bad.py
"""

import jax
import jax.numpy as jnp

weights = jnp.ones((1024, 512))
gradient = jax.grad(lambda weights, inputs: jnp.mean((inputs @ weights) ** 2))
norms = []
for step in range(2000):
    change = gradient(weights, jnp.ones((64, 1024)))
    weights = weights - 0.01 * change
    norms.append(change)
    print(f"step {step}: {float(norms[-1][0, 0]):.3g}")
print("done")
