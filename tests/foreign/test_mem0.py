"""The tests of memory stores of type mem0, in an environment that has the client library."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.foreign.conftest import PLACE, PROJECT

ENVIRONMENT = PLACE / "mem0"


@pytest.mark.skipif(
    not (ENVIRONMENT / ".installed").is_file(), reason="not set up: make foreign installs it"
)
# Most of its time goes into importing the client.
@pytest.mark.slow
def test_stores_of_type_mem0_work_with_the_real_client():
    done = subprocess.run(
        [
            str(ENVIRONMENT / "bin/python"),
            *("-m", "pytest", "tests/unit/memory/test_mem0.py"),
            *("-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) >= 8
