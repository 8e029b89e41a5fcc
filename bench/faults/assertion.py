# cause: user-exception
def check(batch):
    assert batch > 0, "a batch must not be empty"


check(0)
