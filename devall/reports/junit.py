"""Cases and suites of tests as JUnit XML, which every CI system reads.

There is no standard. What is written here holds for the strictest schema in use, that of Ant's
JUnit task (hence a host, a package and empty elements), and so for those of Jenkins and GitLab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from devall.reports.files import write_report

CaseOutcome = Literal["passed", "failed", "error", "skipped"]
"""`failed`: something was not as it should be; `error`: it could not come to that."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test, and how it went."""

    name: str
    group: str = ""
    """What it belongs to, `classname` in the file; empty: the suite."""
    seconds: float = 0
    outcome: CaseOutcome = "passed"
    message: str = ""
    """Why it did not pass, in one sentence."""
    kind: str = ""
    """A stable word for why, such as the code of an error."""
    details: str = ""
    """More about it: lines of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests that were run together."""

    name: str
    cases: Sequence[Case]
    seconds: float | None = None
    """None: the sum of its cases'."""
    at: datetime | None = None
    """When it began; None: now."""
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    out: str = ""
    err: str = ""


def junit_xml(suites: Iterable[Suite]) -> str:
    """The suites as a JUnit XML document; characters that XML does not have are spelled out."""
    root = ET.Element("testsuites")
    for number, suite in enumerate(suites):
        _add_suite(root, suite, number)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="utf-8"?>\n', "\n")
    )


def write_junit(path: Path, suites: Iterable[Suite]) -> None:
    """Write the suites to a file; missing folders are made.

    Raises:
        OSError: it cannot be written.
    """
    write_report(path, junit_xml(suites))


def _add_suite(root: ET.Element, suite: Suite, number: int) -> None:
    outcomes = [case.outcome for case in suite.cases]
    seconds = suite.seconds
    if seconds is None:
        seconds = sum(case.seconds for case in suite.cases)
    name = _name(suite.name)
    element = ET.SubElement(
        root,
        "testsuite",
        {
            "name": name,
            "package": name,
            "id": str(number),
            "timestamp": f"{(suite.at or datetime.now(UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
            "hostname": "localhost",  # the machine's own name is nobody's business
            "tests": str(len(outcomes)),
            "failures": str(outcomes.count("failed")),
            "errors": str(outcomes.count("error")),
            "skipped": str(outcomes.count("skipped")),
            "time": _seconds(seconds),
        },
    )
    properties = ET.SubElement(element, "properties")
    for key, value in suite.properties.items():
        ET.SubElement(properties, "property", {"name": _name(key), "value": _legal(value)})
    for case in suite.cases:
        _add_case(element, case, name)
    ET.SubElement(element, "system-out").text = _legal(suite.out)
    ET.SubElement(element, "system-err").text = _legal(suite.err)


def _add_case(suite: ET.Element, case: Case, group: str) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        {
            "name": _name(case.name),
            "classname": _name(case.group) if case.group else group,
            "time": _seconds(case.seconds),
        },
    )
    if case.outcome == "passed":
        return
    attributes = {"message": _legal(case.message)} if case.message else {}
    if case.outcome != "skipped":
        attributes["type"] = _legal(case.kind or case.outcome)
    result = ET.SubElement(element, _TAGS[case.outcome], attributes)
    if case.details:
        result.text = _legal(case.details)


def _seconds(seconds: float) -> str:
    return f"{max(seconds, 0):.3f}"


def _name(text: str) -> str:
    return _legal(" ".join(text.split())) or "-"


def _legal(text: str) -> str:
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
