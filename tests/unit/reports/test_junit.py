from __future__ import annotations

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.core.outcome import ErrorReport, Outcome
from devall.reports.cases import RUN, suite_of
from devall.reports.files import write_report
from devall.reports.junit import Case, Suite, junit_xml, write_junit
from devall.reports.runs import NodeReport, RunReport

# What the schema of Ant's JUnit task asks for, by element: attributes that must be there, those
# that may, and the elements within in their order.
SUITE = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "time"}
SHAPE: dict[str, tuple[set[str], set[str], str]] = {
    "testsuites": (set(), set(), r"(testsuite )*"),
    "testsuite": (SUITE, {"skipped"}, r"properties (testcase )*system-out system-err "),
    "properties": (set(), set(), r"(property )*"),
    "property": ({"name", "value"}, set(), ""),
    "testcase": ({"name", "classname", "time"}, set(), r"((skipped|error|failure) )?"),
    "skipped": (set(), {"message"}, ""),
    "error": ({"type"}, {"message"}, ""),
    "failure": ({"type"}, {"message"}, ""),
    "system-out": (set(), set(), ""),
    "system-err": (set(), set(), ""),
}


def check(xml: str) -> ET.Element:
    """The document's root, if all of it is as the schema wants it."""
    root = ET.fromstring(xml)
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, inside = SHAPE[element.tag]
        given_names = set(element.attrib)
        assert required <= given_names <= required | optional, element.tag
        assert re.fullmatch(inside, "".join(f"{child.tag} " for child in element)), element.tag
        if "time" in element.attrib:
            assert re.fullmatch(r"\d+\.\d+", element.attrib["time"])
        if "name" in element.attrib:
            assert element.attrib["name"]
    for number, suite in enumerate(root):
        cases = suite.findall("testcase")
        assert suite.attrib["id"] == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        assert int(suite.attrib["tests"]) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped",) * 2):
            assert int(suite.attrib[attribute]) == sum(c.find(tag) is not None for c in cases)
    return root


def test_suites_are_counted_and_shaped_as_the_schema_wants_it():
    cases = [
        Case(name="a", seconds=0.5),
        Case(name="b", outcome="failed", message="no", kind="answer", details="- x\n+ y"),
        Case(name="c", outcome="error", group="other"),
        Case(name="d", outcome="skipped", message="not now"),
    ]
    at = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    first = Suite(name="one", cases=cases, at=at, properties={"k": "v"}, out="o", err="e")
    root = check(junit_xml([first, Suite(name="two", cases=[], seconds=3)]))
    one, two = root
    assert one.attrib["timestamp"] == "2026-05-04T03:02:01"
    assert [one.attrib["time"], two.attrib["time"]] == ["0.500", "3.000"]
    assert [c.attrib["classname"] for c in one.findall("testcase")] == ["one"] * 2 + [
        "other",
        "one",
    ]
    failure = one.find("testcase/failure")
    assert failure is not None
    assert (failure.attrib, failure.text) == ({"message": "no", "type": "answer"}, "- x\n+ y")
    assert one.find("properties/property").attrib == {"name": "k", "value": "v"}  # type: ignore[union-attr]


@given(st.text(st.characters()))
def test_any_text_makes_a_document_that_parses(text: str):
    case = Case(name=text, group=text, outcome="failed", message=text, kind=text, details=text)
    suite = Suite(name=text, cases=[case], properties={text: text}, out=text, err=text)
    check(junit_xml([suite]))


def test_what_xml_does_not_have_is_spelled_out():
    case = Case(name="a", outcome="failed", message="\x1b[31m \ud800 \ufffe é")
    failure = ET.fromstring(junit_xml([Suite(name="s", cases=[case])])).find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == r"\u001b[31m \ud800 \ufffe é"


def test_a_report_makes_its_folders_and_replaces_what_was_there(workspace: Path):
    place = workspace / "a" / "b" / "j.xml"
    write_junit(place, [Suite(name="long" * 100, cases=[])])
    write_junit(place, [Suite(name="s", cases=[])])
    assert check(place.read_text("utf-8"))[0].attrib["name"] == "s"
    assert [p.name for p in place.parent.iterdir()] == ["j.xml"]


def test_a_report_that_cannot_be_written_leaves_nothing_behind(workspace: Path):
    (workspace / "d").mkdir()
    with pytest.raises(IsADirectoryError):
        write_report(workspace / "d", "x")
    with pytest.raises(OSError, match="No space left"):
        write_report(Path("/dev/full"), "x")
    assert [p.name for p in workspace.iterdir()] == ["d"]


def test_a_report_goes_into_pipes_and_to_where_links_lead(workspace: Path):
    (workspace / "link").symlink_to("real")
    write_report(workspace / "link", "é")
    assert (workspace / "real").read_text("utf-8") == "é"
    assert (workspace / "link").is_symlink()
    os.mkfifo(workspace / "pipe")
    reader = os.open(workspace / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_report(workspace / "pipe", "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO((workspace / "pipe").stat().st_mode)


def test_a_run_is_a_suite_with_a_case_for_each_node(completed: RunReport):
    suite = suite_of(completed)
    [one] = check(junit_xml([suite]))
    assert one.attrib["name"] == "poem"
    assert {case.name: case.outcome for case in suite.cases} == {
        "A": "passed",
        "B": "passed",
        "C": "skipped",
    }
    assert suite.properties["run_id"] == "r1"
    assert suite.properties["input_tokens"] == "10"
    assert suite.out == "a poem"
    assert "mind the gap" in suite.err


def test_a_failed_node_tells_what_where_and_what_would_be_right(failed: RunReport):
    cases = {case.name: case for case in suite_of(failed).cases}
    assert cases["B"].outcome == "failed"
    assert cases["B"].kind == "model_refused"
    assert "hint: check the key" in cases["B"].details
    assert "place: sub/flow.yaml:7:9" in cases["B"].details
    assert [cases[name].outcome for name in "CD"] == ["skipped", "skipped"]


def node(**values: object) -> NodeReport:
    return NodeReport(name="A", runs=1, **values)  # type: ignore[arg-type]


BAD = ErrorReport("exception", "boom", "A")


@pytest.mark.parametrize(
    ("outcome", "nodes", "is_red"),
    [
        (Outcome("completed", 0), [node(status="completed")], False),
        (Outcome("completed", 0), [node(status="failed", failure=BAD, is_survived=True)], False),
        (Outcome("completed", 0), [], False),
        (Outcome("failed", 1, BAD), [node(status="failed", failure=BAD)], True),
        (Outcome("failed", 4, ErrorReport("setup", "no key")), [], True),
        (
            Outcome("limit_reached", 6, ErrorReport("limit_reached", "slow")),
            [node(status="cancelled")],
            True,
        ),
        (
            Outcome("limit_reached", 6, ErrorReport("limit_reached", "slow")),
            [node(status="failed", failure=BAD, is_survived=True)],
            True,
        ),
        (
            Outcome("waiting", 75, None, (("/A@1", "well?"),)),
            [node(status="waiting", question="well?")],
            True,
        ),
        (Outcome("waiting", 75, None, (("/A@1", ""),)), [node(status="waiting")], True),
        (Outcome("waiting", 75, None, (("/X@1", "?"),)), [], True),
        (
            Outcome("cancelled", 130, ErrorReport("cancelled", "interrupted")),
            [node(status="cancelled")],
            True,
        ),
    ],
)
def test_a_suite_is_red_exactly_where_the_exit_code_is_not_0(outcome, nodes, is_red):
    report = RunReport(workflow="w.yaml", outcome=outcome, nodes=tuple(nodes))
    suite = suite_of(report)
    check(junit_xml([suite]))
    assert any(case.outcome in {"failed", "error"} for case in suite.cases) is is_red
    assert [case.name for case in suite.cases if case.name == RUN] == (
        [RUN]
        if is_red
        and not any(n.status in {"failed", "waiting"} and not n.is_survived for n in nodes)
        else []
    )
