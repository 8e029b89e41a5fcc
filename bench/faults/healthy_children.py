# cause: none
# budget: 200MB
import subprocess

for number in range(60):
    subprocess.run(["true"], check=True)
