#!/usr/bin/env bash
# Writes constraints.txt anew: names and exact versions of all that a fresh environment gets.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet --editable '.[dev,local]' hatchling
{
    echo "# Written by make constraints: exact versions, the build backend and all extras included."
    "$fresh/bin/python" -m pip freeze --exclude-editable
} >"$fresh/constraints.txt"
mv "$fresh/constraints.txt" constraints.txt
