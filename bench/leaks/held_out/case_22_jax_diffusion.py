import time
import jax
import jax.numpy as jnp
import numpy as np

T, DIM, BATCH = 100, 2048, 768
betas = jnp.linspace(1e-4, 0.02, T)
alpha_bar = jnp.cumprod(1 - betas)


class NoiseSchedule:
    def __init__(self, seed=0):
        self.key = jax.random.PRNGKey(seed)
        self._cache = {}

    def sample(self, step, x0):
        """noised input, noise and time for this step (deterministic per step)"""
        if step not in self._cache:
            k1, k2 = jax.random.split(jax.random.fold_in(self.key, step))
            t = jax.random.randint(k1, (x0.shape[0], 1), 0, T)
            eps = jax.random.normal(k2, x0.shape)
            ab = alpha_bar[t]
            self._cache[step] = (jnp.sqrt(ab) * x0 + jnp.sqrt(1 - ab) * eps, eps, t)
        return self._cache[step]


@jax.jit
def train_step(params, xt, eps, t):
    def loss_fn(p):
        h = jax.nn.relu(xt @ p["w1"] + t / T * p["b"])
        return jnp.mean((h @ p["w2"] - eps) ** 2)
    loss, g = jax.value_and_grad(loss_fn)(params)
    return {k: params[k] - 0.1 * g[k] for k in params}, loss


rng = np.random.default_rng(0)
params = {"w1": jnp.asarray(rng.normal(size=(DIM, 32)) * 0.02, dtype=jnp.float32),
          "w2": jnp.asarray(rng.normal(size=(32, DIM)) * 0.02, dtype=jnp.float32),
          "b": jnp.zeros(32)}
schedule = NoiseSchedule()
for step in range(115):
    time.sleep(0.07)
    x0 = jnp.asarray(rng.random((BATCH, DIM), dtype=np.float32))
    xt, eps, t = schedule.sample(step, x0)
    params, loss = train_step(params, xt, eps, t)
    if step % 10 == 0:
        print("step", step, "loss", loss.item(), flush=True)
