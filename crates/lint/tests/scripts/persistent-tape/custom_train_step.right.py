from tensorflow import keras
import tensorflow as tf


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.encoder_optimizer = keras.optimizers.Adam(1e-3)
        self.decoder_optimizer = keras.optimizers.Adam(1e-3)
        self.total = keras.metrics.Mean(name="loss")

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            mean, log_var = self.encoder(data)
            z = mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))
            rebuilt = self.decoder(z)
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = tf.reduce_mean(tf.square(data - rebuilt)) + kl
        encoder_grads = tape.gradient(loss, self.encoder.trainable_weights)
        decoder_grads = tape.gradient(loss, self.decoder.trainable_weights)
        del tape
        self.encoder_optimizer.apply_gradients(zip(encoder_grads, self.encoder.trainable_weights))
        self.decoder_optimizer.apply_gradients(zip(decoder_grads, self.decoder.trainable_weights))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def main(encoder, decoder, data):
    vae = VAE(encoder, decoder)
    vae.compile()
    vae.fit(data, epochs=30)
