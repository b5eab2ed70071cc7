#!/usr/bin/env bash
# Installs the project with exact versions into .venv; called by make when pyproject.toml or
# constraints.txt is newer than .venv/.installed. Safe to repeat, also after it was interrupted:
# the stamp is written last, and a .venv that does not work is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

command -v "$python" >/dev/null || fail "$python is not there: install Python 3.11 or newer (Debian: apt install python3)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old: Python 3.11 or newer is needed; name one with make PYTHON=..."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "setup: making .venv with $("$python" --version)"
    rm -rf .venv
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv .venv
    elif "$python" -m venv --without-pip .venv 2>/dev/null &&
        "$python" -m pip --python .venv/bin/python install --quiet pip; then
        # Debian keeps ensurepip in a package of its own; the pip that is there does as well.
        :
    else
        rm -rf .venv
        fail "$python cannot make a virtual environment: install its venv module (Debian: apt install python3-venv)"
    fi
fi

echo "setup: installing into .venv (about a minute the first time)"
# By environment, so that the build backend in its own isolated environment is held to it too.
PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
    .venv/bin/python -m pip install --quiet --editable '.[dev,local]'
touch .venv/.installed
