#!/bin/bash
set -e

echo 'upgrading workahead...'
source workahead/py-workahead/bin/activate
# WORKAHEAD_WHEEL: a wheel's path, until the package is in the index.
python3 -m pip install --upgrade psutil pyarrow "${WORKAHEAD_WHEEL:-workahead}" > /dev/null
deactivate
