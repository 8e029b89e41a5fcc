"""Sets limits of its own and reads them back, in itself and in a child."""
import resource
import subprocess

LIMITS = {"NOFILE": 77, "STACK": 3 << 20, "CORE": 0, "AS": 30 << 30, "FSIZE": 1 << 20, "CPU": 1000}
for name, soft in LIMITS.items():
    number = getattr(resource, "RLIMIT_" + name)
    resource.setrlimit(number, (soft, resource.getrlimit(number)[1]))
    print(name, resource.getrlimit(number)[0], flush=True)
print(subprocess.check_output("ulimit -n; ulimit -s; ulimit -v; ulimit -f; ulimit -t", shell=True, text=True))
