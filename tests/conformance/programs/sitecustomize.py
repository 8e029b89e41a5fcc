import sys

sys.stderr.write("the sitecustomize of the user\n")
