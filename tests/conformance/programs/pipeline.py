import subprocess
import sys

first = subprocess.Popen(["seq", "20000"], stdout=subprocess.PIPE)
second = subprocess.Popen(["grep", "99"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
print(len(second.communicate()[0]), first.wait(), second.returncode)
print(subprocess.run(["sh", "-c", "kill -TERM $$"]).returncode)
print(subprocess.run("exit 9", shell=True).returncode)
print(subprocess.check_output([sys.executable, "-c", "print(input())"], input=b"through a child\n"))
# A reader that goes away early.
producer = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
producer.stdout.read(10)
producer.stdout.close()
print(producer.wait())
