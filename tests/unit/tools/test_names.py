from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from devall.tools.names import is_legal, nearest, public_name


@given(st.text())
def test_every_name_becomes_legal_and_legal_names_stay(name: str):
    found = public_name(name)
    assert is_legal(found)
    assert found == name or not is_legal(name)


def test_names_that_look_alike_once_cut_or_cleaned_stay_apart():
    long = "chrome_devtools_mcp_" + "x" * 60
    assert public_name(long + "a") != public_name(long + "b")
    assert public_name("a.b") != public_name("a_b")
    assert public_name("a.b/c").startswith("a_b_c_")
    assert public_name("поиск").startswith("tool_")


def test_a_name_is_the_same_in_another_process():
    code = "from devall.tools.names import public_name; print(public_name('get user'))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout.strip() == public_name("get user")


def test_nearest_names_look_past_case_and_separators():
    assert nearest("Read-File", ["write", "read_file"]) == ["read_file"]
    assert nearest("zzz", ["read_file"]) == []
