"""Words without quotes that YAML 1.1 reads otherwise than YAML 1.2."""

from __future__ import annotations

import re

BOOLS = {
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), "false"),
}
"""Words that are booleans there and text here, and how these are written here."""
_OCTAL = re.compile(r"([-+]?)0([0-7_]*[1-7][0-7_]*)")
_GROUPED = re.compile(r"[-+]?[1-9][0-9_]*_[0-9_]*")
_SIXTIES = re.compile(r"([-+]?)([1-9][0-9]*)((?::[0-5]?[0-9])+)")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?")


def is_octal(written: str) -> bool:
    """Whether it is an octal number there, such as 010."""
    return _OCTAL.fullmatch(written) is not None


def is_date(written: str) -> bool:
    """Whether it is a date there, with or without a time."""
    return _DATE.fullmatch(written) is not None


def old_number(written: str) -> int | None:
    """The whole number that it is there, where it is another one here or none."""
    if found := _OCTAL.fullmatch(written):
        return int(found[1] + found[2].replace("_", ""), 8)
    if _GROUPED.fullmatch(written):
        return int(written.replace("_", ""))
    if found := _SIXTIES.fullmatch(written):
        total = int(found[2])
        for digits in found[3][1:].split(":"):
            total = total * 60 + int(digits)
        return -total if found[1] == "-" else total
    return None
