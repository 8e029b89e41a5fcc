# A Python in a folder of its own with its libraries beside it, activated by variables alone, as conda lays it out.
set -e
real=$("$1" -c 'import os, sys; print(os.path.realpath(sys.executable))')
mkdir -p env/bin env/conda-meta
cp "$real" env/bin/python3
ln -s "$(dirname "$(dirname "$real")")/lib" env/lib
export CONDA_PREFIX=$PWD/env CONDA_SHLVL=1 PATH=$PWD/env/bin:$PATH PYTHONDONTWRITEBYTECODE=1
python3 -c 'import json, os, sys; print(os.path.relpath(sys.prefix), os.path.relpath(sys.executable), len(sys.argv))'
exec env/bin/python3 -c 'import subprocess, sys; sys.exit(subprocess.run(["python3", "-c", "exit(7)"]).returncode)'
