# A virtual environment, its activation, and a script that is started through it.
set -e
"$1" -m venv --without-pip ../tmp/made
. ../tmp/made/bin/activate
python -c 'import sys; print(sys.prefix, sys.prefix != sys.base_prefix)'
printf '#!%s\nprint("a script of the environment")\n' "$VIRTUAL_ENV/bin/python" > ../tmp/script
chmod +x ../tmp/script
../tmp/script
python -c 'import json, sys; print(json.__name__); sys.exit(5)'
