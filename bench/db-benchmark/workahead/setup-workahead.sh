#!/bin/bash
set -e

virtualenv workahead/py-workahead --python=python3
./workahead/upg-workahead.sh
./workahead/ver-workahead.sh
