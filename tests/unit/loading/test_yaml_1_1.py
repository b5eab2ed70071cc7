from __future__ import annotations

import pytest

from devall.loading.yaml_1_1 import BOOLS, is_date, old_number


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("010", 8),
        ("-017", -15),
        ("0_17", 15),
        ("1_000", 1000),
        ("1:30", 90),
        ("-1:00:01", -3601),
        *((same, None) for same in ("0", "00", "08", "10", "1.5", "0x10", "0o10", "1:75", "x")),
    ],
)
def test_numbers_that_the_old_yaml_reads_otherwise(written: str, number: int | None):
    assert old_number(written) == number


def test_only_whole_words_are_booleans():
    assert BOOLS["Yes"] == "true"
    assert "y" not in BOOLS
    assert "oN" not in BOOLS


@pytest.mark.parametrize("written", ["2026-01-02", "2026-1-2", "2026-01-02 10:00:00"])
def test_dates(written: str):
    assert is_date(written)
    assert not is_date(f"x{written}")
