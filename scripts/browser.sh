#!/usr/bin/env bash
# Installs the browser that reports are tested in, Debian's chromium, where it is not there and
# apt-get can have it. Elsewhere it says so and ends well: the tests are skipped with that reason.
set -euo pipefail

if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
    exit 0
fi

missing() {
    printf 'browser: %s; tests of reports in a browser are skipped\n' "$1" >&2
    exit 0
}

command -v apt-get >/dev/null || missing "there is no chromium, and no apt-get to install it"
[ "$(id -u)" -eq 0 ] || missing "there is no chromium (apt-get install chromium, as root)"

echo "browser: installing chromium (about a minute)"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install --yes --no-install-recommends chromium; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    missing "apt-get could not install chromium"
fi
