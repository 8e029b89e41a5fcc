import time
import jax
import jax.numpy as jnp
from functools import partial

SIZE, BATCH, HID = 64 * 64 * 3, 192, 64


def init(key):
    k1, k2 = jax.random.split(key)
    return {"enc": jax.random.normal(k1, (SIZE, HID)) * 0.01,
            "dec": jax.random.normal(k2, (HID, SIZE)) * 0.01}


def forward(p, x):
    return jax.nn.sigmoid(jnp.tanh(x @ p["enc"]) @ p["dec"])


def loss_fn(p, x):
    recon = forward(p, x)
    return jnp.mean((recon - x) ** 2), recon


@partial(jax.jit, static_argnums=2)
def update(p, x, lr):
    (loss, recon), g = jax.value_and_grad(loss_fn, has_aux=True)(p, x)
    return jax.tree_util.tree_map(lambda w, dw: w - lr * dw, p, g), loss, recon


def make_logger():
    recons, losses = [], []

    def log(step, loss, recon):
        losses.append(float(loss))
        recons.append(recon)
        if step % 20 == 0:
            print(f"[{step:4d}] mse={losses[-1]:.5f}", flush=True)

    return log, recons, losses


def main(steps=110):
    key = jax.random.PRNGKey(0)
    params = init(key)
    log, recons, losses = make_logger()
    for step in range(steps):
        time.sleep(0.04)  # waiting for data
        key, sub = jax.random.split(key)
        x = jax.random.uniform(sub, (BATCH, SIZE))
        params, loss, recon = update(params, x, 0.5)
        log(step, loss, recon)
    # a small picture strip of the last reconstructions
    strip = recons[-1][:8].reshape(8, 64, 64, 3)
    print("final", losses[-1], "strip", strip.shape)


if __name__ == "__main__":
    main()
