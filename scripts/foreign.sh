#!/usr/bin/env bash
# Installs what tests/foreign runs against into .venv/foreign: the client of mem0, MCP servers that
# others wrote, the protocol's conformance suite, and the Node that it needs. Called by make when the pins in
# tests/foreign are newer than the stamp, which is written last. Where npm cannot be had it says
# so, leaves the reason in .venv/foreign/.missing and ends well: the tests are skipped with it.
set -euo pipefail
cd "$(dirname "$0")/.."

pins=tests/foreign
place=.venv/foreign

missing() {
    printf 'foreign: %s; tests/foreign are skipped\n' "$1" >&2
    printf '%s\n' "$1" >"$place/.missing"
    exit 0
}

mkdir -p "$place"
rm -f "$place/.installed" "$place/.missing"
# An environment on top of devall's: the client wants an older protobuf than others that are there.
.venv/bin/python -m venv --clear --without-pip "$place/mem0"
echo 'import site; site.addsitedir("'"$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])')"'")' \
    >"$(echo "$place"/mem0/lib/python*/site-packages)/devall.pth"
.venv/bin/python -m pip --disable-pip-version-check --python "$place/mem0/bin/python" \
    install --quiet --requirement "$pins/mem0.txt"
touch "$place/mem0/.installed"

command -v npm >/dev/null || missing "npm is not there"

echo "foreign: installing MCP servers of others into $place (about a minute the first time)"
cp "$pins/package.json" "$place/"
npm=(npm --prefix "$place" --no-package-lock --no-audit --no-fund --no-update-notifier
    --loglevel=error --fetch-retries=1)
if ! "${npm[@]}" install >"$place/npm.log" 2>&1; then
    cat "$place/npm.log" >&2
    "${npm[@]}" view node version >/dev/null 2>&1 || missing "npm reaches no registry"
    exit 1
fi

# An environment of their own: their version of the protocol's library need not be ours. Without
# pip of its own, since Debian's Python cannot give it one, and ours does as well.
.venv/bin/python -m venv --clear --without-pip "$place/python"
.venv/bin/python -m pip --disable-pip-version-check --python "$place/python/bin/python" \
    install --quiet --requirement "$pins/requirements.txt"
touch "$place/.installed"
