#!/usr/bin/env bash
# Installs the engines that the benchmarks compare with (the extra `bench`) into .venv/bench.
# Called by make; the stamp is written last.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "bench: installing other engines into .venv/bench"
# Without pip of its own: Debian's Python cannot give it one, and ours does as well.
.venv/bin/python -m venv --clear --without-pip .venv/bench
engines=$(.venv/bin/python -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["bench"])
')
# shellcheck disable=SC2086 # one argument each
.venv/bin/python -m pip --disable-pip-version-check --python .venv/bench/bin/python \
    install --quiet --constraint constraints.txt $engines
touch .venv/bench/.installed
