"""When a failed model call is repeated, by requests that a real server counts."""

from __future__ import annotations

import asyncio

import pytest

from devall.agents.retry import complete_with_retry
from devall.config.agents import RetryConfig
from devall.core.errors import BadModelResponse, ModelError, ModelRefused, ModelUnavailable
from devall.core.messages import user
from devall.models.base import ChatRequest, ModelChoice
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer, refused_url
from devall.testing.scripted_model import ScriptedModels

REQUEST = ChatRequest((user("hi"),))


class Watched:
    """Waits that take no time, and failures, as they happened."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.failures: list[tuple[int, float | None]] = []
        self.heard: list[str] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def failed(self, *, error: ModelError, attempt: int, wait: float | None) -> None:
        self.failures.append((attempt, wait))

    async def ask(self, model, **config):
        return await complete_with_retry(
            model,
            REQUEST,
            self.heard.append,
            RetryConfig(**config),
            on_failure=self.failed,
            sleep=self.sleep,
        )


async def over_http(replies: list, watched: Watched, **config):
    """What came out, and how many requests the server saw."""
    models = Models({})
    try:
        async with ChatServer({"m": replies}) as server:
            model = models.model(ModelChoice("openai", "m", server.url))
            try:
                outcome = await watched.ask(model, **config)
            except ModelError as error:
                outcome = error
            return outcome, len(server.calls["m"])
    finally:
        await models.aclose()


async def in_process(written, watched: Watched, **config):
    """The same without HTTP."""
    models = ScriptedModels({"m": written})
    try:
        outcome = await watched.ask(models.model(ModelChoice("openai", "m")), **config)
    except ModelError as error:
        outcome = error
    return outcome, len(models.requests["m"])


@pytest.mark.parametrize(
    ("written", "requests"),
    [
        ({"status": 400}, 1),
        ({"error": "context_length_exceeded"}, 1),
        ({"status": 401}, 1),
        ({"status": 403}, 1),
        ({"status": 404}, 1),
        ({"error": "insufficient_quota"}, 1),
        ({"fault": "html"}, 1),
        ({"fault": "null_choices"}, 1),
        ({"status": 408}, 5),
        ({"status": 409}, 5),
        ({"error": "rate_limit_exceeded"}, 5),
        ({"error": "rate_limit_exceeded", "retry_after": 2}, 5),
        ({"status": 500}, 5),
        ({"status": 503}, 5),
        ({"fault": "half_stream"}, 5),
        ({"fault": "close"}, 5),
    ],
    ids=str,
)
async def test_five_requests_for_what_may_pass_and_one_for_what_stays(written, requests):
    watched = Watched()
    outcome, seen = await over_http([written] * 20, watched)
    assert isinstance(outcome, ModelError)
    assert seen == requests
    assert [attempt for attempt, _ in watched.failures] == list(range(1, requests + 1))
    assert watched.failures[-1][1] is None
    assert len(watched.waits) == requests - 1


async def test_a_refused_connection_is_tried_again():
    watched = Watched()
    models = Models({})
    with refused_url() as url, pytest.raises(ModelUnavailable, match="refused"):
        await watched.ask(models.model(ModelChoice("openai", "m", url)), max_attempts=3)
    await models.aclose()
    assert len(watched.failures) == 3


async def test_the_first_good_answer_ends_it():
    watched = Watched()
    outcome, seen = await over_http([{"status": 503}, {"status": 500}, "fine", "more"], watched)
    assert outcome.message.text == "fine"
    assert seen == 3
    assert [attempt for attempt, _ in watched.failures] == [1, 2]


async def test_waits_grow_from_the_shortest_to_the_longest():
    watched = Watched()
    await in_process([{"status": 503}] * 9, watched, max_attempts=9)
    assert all(1 <= wait <= 6 for wait in watched.waits)
    assert watched.waits[0] < 2.01
    assert watched.waits[-1] == 6
    assert [wait for _, wait in watched.failures] == [*watched.waits, None]


async def test_agents_that_fail_together_do_not_wait_alike():
    waits = []
    for _ in range(8):
        watched = Watched()
        await in_process([{"status": 503}] * 2, watched, max_attempts=2)
        waits += watched.waits
    assert len(set(waits)) > 1


async def test_the_endpoint_s_own_time_is_waited():
    watched = Watched()
    await over_http([{"status": 429, "retry_after": 20}, "fine"], watched)
    assert 20 <= watched.waits[0] <= 21


async def test_a_time_that_is_too_long_fails_at_once_and_is_told():
    watched = Watched()
    outcome, seen = await over_http([{"status": 429, "retry_after": 3600}] * 5, watched)
    assert seen == 1
    assert type(outcome) is ModelUnavailable
    assert "asks to wait 3600 s" in str(outcome)
    assert "60 s" in str(outcome)
    assert outcome.retry_after == 3600
    assert watched.failures == [(1, None)]


async def test_max_wait_seconds_above_a_minute_allows_longer_waits():
    watched = Watched()
    script = [{"status": 429, "retry_after": 100}, "fine"]
    outcome, _ = await in_process(script, watched, max_wait_seconds=120)
    assert outcome.message.text == "fine"
    assert watched.waits[0] >= 100


async def test_a_long_time_at_the_last_attempt_is_the_plain_error():
    watched = Watched()
    script = [{"status": 429, "retry_after": 3600}]
    outcome, _ = await in_process(script, watched, max_attempts=1)
    assert "asks to wait" not in str(outcome)


@pytest.mark.parametrize("config", [{"enabled": False}, {"max_attempts": 1}])
async def test_without_retries_there_is_one_request(config):
    watched = Watched()
    _, seen = await in_process([{"status": 503}] * 3, watched, **config)
    assert seen == 1
    assert watched.waits == []


@pytest.mark.parametrize(
    ("written", "config", "requests"),
    [
        ({"status": 404}, {"retry_on_status_codes": [404]}, 2),
        ({"status": 503}, {"retry_on_status_codes": [404]}, 1),
        ({"status": 400}, {"retry_on_error_substrings": ["Scripted 400"]}, 2),
        ({"status": 400}, {"retry_on_error_substrings": ["other"]}, 1),
        ({"status": 400}, {"retry_on_error_substrings": [""]}, 1),
        ({"status": 400}, {"retry_on_exception_types": ["BadRequestError"]}, 2),
        ({"status": 400}, {"retry_on_exception_types": ["openai.badrequesterror"]}, 2),
        ({"status": 400}, {"retry_on_exception_types": ["APIError"]}, 2),
        ({"status": 400}, {"retry_on_exception_types": ["RateLimitError"]}, 1),
        ({"status": 400}, {"retry_on_exception_types": ["Exception"]}, 1),
        ({"status": 503}, {"non_retry_exception_types": ["InternalServerError"]}, 1),
        ({"fault": "close"}, {"non_retry_exception_types": ["RemoteProtocolError"]}, 1),
        ({"status": 400}, {"retry_on_exception_types": ["ModelRefused"],
                           "non_retry_exception_types": ["BadRequestError"]}, 1),
        ({"fault": "html"}, {"retry_on_exception_types": ["BadModelResponse"]}, 2),
        ({"error": "insufficient_quota"}, {"retry_on_status_codes": [429]}, 1),
        ({"error": "insufficient_quota"}, {"retry_on_error_substrings": ["quota"]}, 2),
    ],
    ids=str,
)  # fmt: skip
async def test_the_file_decides_what_else_is_repeated_and_what_is_not(written, config, requests):
    watched = Watched()
    _, seen = await over_http([written] * 3, watched, max_attempts=2, **config)
    assert seen == requests


async def test_each_attempt_s_text_starts_afresh():
    watched = Watched()
    script = [{"text": "half of it all", "fault": "half_stream"}, "whole"]
    outcome, _ = await over_http(script, watched)
    assert outcome.message.text == "whole"
    assert "".join(watched.heard).endswith("whole")


async def test_cancelling_ends_the_wait():
    models = ScriptedModels({"m": [{"status": 503}] * 5})
    watched = Watched()
    task = asyncio.create_task(
        complete_with_retry(
            models.model(ModelChoice("openai", "m")),
            REQUEST,
            watched.heard.append,
            RetryConfig(min_wait_seconds=30, max_wait_seconds=30),
            on_failure=watched.failed,
        )
    )
    while not watched.failures and not task.done():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(models.requests["m"]) == 1


async def test_what_is_no_model_s_failure_is_not_repeated():
    models = ScriptedModels({"m": []}, strict=True)
    watched = Watched()
    with pytest.raises(AssertionError):
        await watched.ask(models.model(ModelChoice("openai", "m")))
    assert len(models.requests["m"]) == 1
    assert watched.failures == []


@pytest.mark.parametrize("kind", [ModelRefused, BadModelResponse])
async def test_the_last_error_is_the_one_that_is_raised(kind):
    written = {"status": 400} if kind is ModelRefused else {"fault": "html"}
    outcome, _ = await over_http([{"status": 503}, written], Watched())
    assert type(outcome) is kind
