import numpy

generator = numpy.random.default_rng(0)
inputs, targets = generator.normal(size=(64, 8)), generator.normal(size=64)
weights = numpy.zeros(8)
for step in range(20):
    weights -= 0.01 * inputs.T @ (inputs @ weights - targets) / 64
print(numpy.round(weights, 10).tolist())
try:
    numpy.ones(3) @ numpy.ones(4)
except ValueError as error:
    print(error)
