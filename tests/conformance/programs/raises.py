def inner(values):
    return values["absent"]


def outer():
    try:
        inner({})
    except KeyError as error:
        raise RuntimeError("the message") from error


outer()
