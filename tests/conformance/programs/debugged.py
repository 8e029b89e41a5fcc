def step(x):
    y = x * 2
    breakpoint()
    return y


print(step(21))
