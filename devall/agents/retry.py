"""When a failed model call is repeated, and after how long."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol, TypeVar

import tenacity

from devall.config.agents import RetryConfig
from devall.core.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from devall.models.base import ChatModel, ChatReply, ChatRequest, OnText, may_pass

LONGEST_RETRY_AFTER = 60.0
"""Seconds that an endpoint may ask to wait, unless `max_wait_seconds` is more."""

_MOST_DOUBLINGS = 30

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]


class OnFailure(Protocol):
    """Takes each failed attempt; `wait` is the time until the next, None = there is none."""

    def __call__(self, *, error: ModelError, attempt: int, wait: float | None) -> None:
        """Note the failure."""
        ...


async def complete_with_retry(
    model: ChatModel,
    request: ChatRequest,
    on_text: OnText,
    config: RetryConfig,
    *,
    on_failure: OnFailure,
    sleep: Sleep = asyncio.sleep,
) -> ChatReply:
    """The model's reply, after as many attempts as the file allows.

    What waits is the endpoint's own `Retry-After`, else a time that doubles from
    `min_wait_seconds` to `max_wait_seconds`, with some chance in it, so that agents that
    failed together do not come back together. Each attempt's text starts afresh.

    Args:
        model: Makes one attempt at a time.
        request: Sent unchanged each time.
        on_text: Takes pieces of the text, those of failed attempts included.
        config: When to repeat.
        on_failure: Called after each failed attempt, the last one included.
        sleep: Waits; seconds.

    Raises:
        ModelError: the last attempt's; with the time in its text where the endpoint asks for
            a longer wait than is allowed.
        SetupError: a key, an extra or a file is missing.
    """
    return await repeated(
        lambda: model.complete(request, on_text), config, on_failure=on_failure, sleep=sleep
    )


async def repeated(
    call: Callable[[], Awaitable[T]],
    config: RetryConfig,
    *,
    on_failure: OnFailure | None = None,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """What a call gives, after as many attempts as the file allows.

    Args:
        call: One attempt.
        config: When to repeat.
        on_failure: Called after each failed attempt, the last one included.
        sleep: Waits; seconds.

    Raises:
        ModelError, SetupError: as for `complete_with_retry`.
    """
    attempts = config.max_attempts if config.enabled else 1
    attempt = 0

    def wait(state: tenacity.RetryCallState) -> float:
        asked = _error_of(state).retry_after
        if asked is not None:
            return asked + _chance(min(1.0, asked / 10))
        shortest = config.min_wait_seconds
        grown = shortest * 2.0 ** min(state.attempt_number - 1, _MOST_DOUBLINGS)
        return min(grown + _chance(shortest), config.max_wait_seconds)

    def tell(error: ModelError, wait: float | None) -> None:
        if on_failure is not None:
            on_failure(error=error, attempt=attempt, wait=wait)

    def before_sleep(state: tenacity.RetryCallState) -> None:
        assert state.next_action is not None
        tell(_error_of(state), state.next_action.sleep)

    async def once() -> T:
        nonlocal attempt
        attempt += 1
        return await call()

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=wait,
        retry=tenacity.retry_if_exception(
            lambda e: is_worth_repeating(e, config) and not _asks_too_long(e, config)
        ),
        before_sleep=before_sleep,
        sleep=sleep,
        reraise=True,
    )
    try:
        return await retrying(once)
    except ModelError as error:
        tell(error, None)
        if attempt < attempts and is_worth_repeating(error, config):
            raise _too_long(error, config) from error
        raise


def _chance(most: float) -> float:
    return random.uniform(0, most)  # noqa: S311 - not for secrets


def is_worth_repeating(error: BaseException, config: RetryConfig) -> bool:
    """Whether the file would have the call repeated after this error.

    Classes are named by their bare name, in any case, and looked for in the whole chain of
    causes, base classes included.
    """
    if not isinstance(error, ModelError) or isinstance(error, ContextOverflow):
        return False  # a request that is too long stays so
    chain = list(_chain(error))
    names = {kind.__name__.lower() for e in chain for kind in type(e).__mro__[:-2]} - {"exception"}
    if names & _bare(config.non_retry_exception_types):
        return False
    if names & _bare(config.retry_on_exception_types):
        return True
    text = "\n".join(map(str, chain)).lower()
    if any(part and part.lower() in text for part in config.retry_on_error_substrings):
        return True
    is_listed = error.status in config.retry_on_status_codes
    if isinstance(error, ModelRefused):
        # A refusal with a status that mostly passes (429 for want of credit) does not pass.
        return is_listed and error.status is not None and not may_pass(error.status)
    return isinstance(error, ModelUnavailable) and (error.status is None or is_listed)


def _bare(names: tuple[str, ...]) -> set[str]:
    return {name.rpartition(".")[2].lower() for name in names}


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _error_of(state: tenacity.RetryCallState) -> ModelError:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, ModelError)
    return error


def _longest(config: RetryConfig) -> float:
    return max(config.max_wait_seconds, LONGEST_RETRY_AFTER)


def _asks_too_long(error: BaseException, config: RetryConfig) -> bool:
    asked = error.retry_after if isinstance(error, ModelError) else None
    return asked is not None and asked > _longest(config)


def _too_long(error: ModelError, config: RetryConfig) -> ModelUnavailable:
    found = ModelUnavailable(
        f"{error}; it asks to wait {error.retry_after:.0f} s, "
        f"longer than the {_longest(config):g} s that are allowed",
        provider=error.provider,
        status=error.status,
        retry_after=error.retry_after,
        hint="try again later, or raise `retry.max_wait_seconds`",
    )
    found.model, found.url = error.model, error.url
    return found
