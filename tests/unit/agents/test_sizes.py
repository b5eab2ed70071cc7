"""Estimates of tokens."""

from __future__ import annotations

import pytest

from devall.agents.sizes import MEDIA_TOKENS, Sizes, longest_output
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, user
from devall.core.usage import TokenUsage
from devall.models.base import ToolSchema

LONG = (user("word " * 800),)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("word " * 400, 480, 530), ("字" * 400, 280, 320), ("", 0, 10)]
)
def test_text_is_a_quarter_of_its_bytes(text, low, high):
    assert low <= Sizes().of_message(user(text)) <= high


def test_calls_media_and_tools_count():
    sizes = Sizes()
    plain = sizes.of_message(Message("assistant", "x"))
    called = Message("assistant", "x", tool_calls=(ToolCall("1", "t", "y" * 400),))
    assert sizes.of_message(called) >= plain + 100
    picture = Message("user", (TextPart("x"), MediaPart("image", "image/png", url="u")))
    assert sizes.of_message(picture) >= MEDIA_TOKENS
    assert sizes.of_tools([ToolSchema("t", "d" * 400, {})]) >= 100
    assert sizes.of_tools([]) == 0
    assert sizes.of_tools([ToolSchema("t", "", {}, 400)]) >= 100


def test_what_the_provider_counted_corrects_later_estimates_within_bounds():
    for counted, factor in ((1500, 1.5), (100_000, 2), (1, 0.5)):
        sizes = Sizes()
        before = sizes.of_message(LONG[0])
        sizes.learn(sizes.of_request(LONG, ()), TokenUsage(counted, 1))
        assert sizes.of_message(LONG[0]) == pytest.approx(before * factor, rel=0.02)


def test_short_requests_and_counts_of_nothing_teach_nothing():
    sizes = Sizes()
    sizes.learn(sizes.of_request((user("hi"),), ()), TokenUsage(90, 1))
    sizes.learn(sizes.of_request(LONG, ()), TokenUsage(0, 1))
    assert sizes.of_message(user("word " * 400)) == Sizes().of_message(user("word " * 400))


def test_a_request_is_its_messages_and_its_tools():
    sizes = Sizes()
    tools = [ToolSchema("t", "d" * 400, {})]
    assert sizes.of_request(LONG, tools).tokens == sizes.of_message(LONG[0]) + sizes.of_tools(tools)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_longest_output_is_what_the_file_says(name):
    assert longest_output({name: 77, "temperature": 1}) == 77
    assert longest_output({name: None}) == 0
    assert longest_output({}) == 0
