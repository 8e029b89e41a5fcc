"""REINFORCE on a toy continuous bandit with image observations."""
import time
import jax
import jax.numpy as jnp

OBS, HID, ACT, BATCH = 4096, 704, 4, 640


def init_params(key):
    a, b = jax.random.split(key)
    return [jax.random.normal(a, (OBS, HID)) / 64, jax.random.normal(b, (HID, ACT)) / 23]


def policy(params, obs):
    return jnp.tanh(obs @ params[0]) @ params[1]


@jax.jit
def rollout(params, key):
    k1, k2 = jax.random.split(key)
    obs = jax.random.uniform(k1, (BATCH, OBS))
    act = jax.random.categorical(k2, policy(params, obs))
    rew = (act == jnp.argmax(obs[:, :ACT], axis=1)).astype(jnp.float32)
    return obs, act, rew


@jax.jit
def pg(params, obs, act, adv):
    def surrogate(p):
        logp = jax.nn.log_softmax(policy(p, obs))
        return -(logp[jnp.arange(BATCH), act] * adv).mean()
    return jax.grad(surrogate)(params)


class Run:
    episodes = []

    def __init__(self):
        self.key = jax.random.PRNGKey(42)
        self.params = init_params(self.key)
        self.grad_history = {}
        self.baseline = 0.0

    def iterate(self, i):
        self.key, sub = jax.random.split(self.key)
        time.sleep(0.05)          # the simulator
        obs, act, rew = rollout(self.params, sub)
        Run.episodes.append({"obs": obs, "act": act, "rew": rew})
        self.baseline = 0.9 * self.baseline + 0.1 * float(rew.mean())
        g = pg(self.params, obs, act, rew - self.baseline)
        self.grad_history[i] = g
        self.params = [p - 0.5 * d for p, d in zip(self.params, g)]
        return float(rew.mean())


if __name__ == "__main__":
    run = Run()
    rewards = []
    for i in range(85):
        rewards.append(run.iterate(i))
        if i % 10 == 0:
            gn = jnp.sqrt(sum(jnp.sum(x ** 2) for x in run.grad_history[i]))
            print(f"it {i:3d} reward {rewards[-1]:.3f} |g| {gn:.4f}", flush=True)
    print("best", max(rewards), "last return", float(Run.episodes[-1]["rew"].sum()))
