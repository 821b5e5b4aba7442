#!/bin/sh
# Installs the peers if they are missing, then runs our rates and theirs in turn and writes docs/benchmarks.md.
# usage: bench.sh FOLDER_OF_EXECUTABLES [options of bench.py]
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || { echo "bench: run 'make setup' first" >&2; exit 2; }
if ! "$python" -c 'import torch, onnx, onnxruntime, chess' 2>/dev/null; then
    echo "bench: installing the peers (PyTorch, onnxruntime, python-chess) into .venv"
    "$python" -m pip install --quiet --disable-pip-version-check -r benches/peers/requirements.txt
fi
exec "$python" scripts/bench.py "$@"
