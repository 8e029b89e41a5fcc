import jax
import jax.numpy


@jax.jit
def loss(weights, inputs):
    return ((inputs @ weights) ** 2).mean()


weights, inputs = jax.numpy.ones(4), jax.random.normal(jax.random.key(0), (16, 4))
for step in range(3):
    weights -= 0.1 * jax.grad(loss)(weights, inputs)
    print(f"{loss(weights, inputs):.5f}")
