# cause: none
# ask: 80
# stdin: open
for number in range(3):
    print("epoch", number)
print("now", flush=True)
name = input("a name for this model: ")
