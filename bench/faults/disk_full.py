# cause: disk-full
# disk: 8M
with open("log", "wb") as file:
    while True:
        file.write(bytes(500_000))
        file.flush()
