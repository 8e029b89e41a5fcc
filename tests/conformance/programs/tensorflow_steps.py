import tensorflow

tensorflow.random.set_seed(0)
model = tensorflow.keras.Sequential([tensorflow.keras.layers.Dense(4), tensorflow.keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(tensorflow.ones((32, 8)), tensorflow.zeros((32, 1)), epochs=2, verbose=0)
print(len(history.history["loss"]), history.history["loss"][1] < history.history["loss"][0])
