"""Auto-decoder: every mini-batch gets a latent code that is optimised together with the decoder."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time
import tensorflow as tf

SCENES, EPOCHS, PTS = 8, 20, 2048


class AutoDecoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.normal((1024, 32), stddev=0.05))
        self.w2 = tf.Variable(tf.random.normal((32, 3), stddev=0.05))
        self.codes = []

    def new_code(self, n):
        z = tf.Variable(tf.random.normal((n, 1024), stddev=0.01))
        self.codes.append(z)
        return z

    def __call__(self, z):
        return tf.tanh(z @ self.w1) @ self.w2


dec = AutoDecoder()
points = [tf.random.normal((PTS, 3), seed=s) for s in range(SCENES)]

for epoch in range(EPOCHS):
    for scene in range(SCENES):
        time.sleep(0.05)      # read the scan
        code = dec.new_code(PTS)
        for inner in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((dec(code) - points[scene]) ** 2)
            g1, g2, gz = tape.gradient(loss, [dec.w1, dec.w2, code])
            dec.w1.assign_sub(0.05 * g1)
            dec.w2.assign_sub(0.05 * g2)
            code.assign_sub(5.0 * gz)
    print("epoch", epoch, "loss", float(loss), flush=True)

print("trained codes:", SCENES, "decoder norm", float(tf.norm(dec.w2)))
