#!/bin/bash
set -e

source workahead/py-workahead/bin/activate
python3 -c 'import workahead; print(workahead.__version__, end="")' > workahead/VERSION
: > workahead/REVISION
deactivate
