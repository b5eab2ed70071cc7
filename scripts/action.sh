#!/usr/bin/env bash
# The steps of action.yml: `install` into an environment of its own, then `run` one command.
set -euo pipefail

here=${RUNNER_TEMP:?set by GitHub Actions}/devall

install() {
  local what=$DEVALL_SOURCE extras=${DEVALL_EXTRAS:+[$DEVALL_EXTRAS]}
  if [[ -e $what ]]; then what+=$extras; elif [[ -n $extras ]]; then what="devall$extras @ $what"; fi
  python3 -m venv "$here/venv"
  "$here/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$what"
  echo "$here/venv/bin" >>"$GITHUB_PATH"
}

run() {
  local code=0 words=() result stop
  mkdir -p "$here"
  # To a file first: a command that cannot be split must not become another one.
  python3 - >"$here/words" <<'PY'
import glob, os, shlex, sys

for word in shlex.split(os.environ["DEVALL_COMMAND"]):
    found = sorted(glob.glob(word, recursive=True)) if word.endswith((".yaml", ".yml")) else []
    sys.stdout.write("".join(f"{each}\0" for each in found or [word]))
PY
  mapfile -d '' -t words <"$here/words"
  result=$(mktemp "$here/result.XXXXXX")
  devall "${words[@]}" >"$result" || code=$?
  # What a model has written must not be taken for a command to the workflow.
  stop=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
  printf '::stop-commands::%s\n' "$stop"
  cat "$result"
  printf '\n::%s::\n' "$stop"
  printf 'exit-code=%s\nresult=%s\n' "$code" "$result" >>"$GITHUB_OUTPUT"
  return "$code"
}

"$1"
