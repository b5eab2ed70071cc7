"""Providers of the SDK that belong to one run, and the way of what they gather to the exporters."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider as OwnMeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as OwnTracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.trace import NoOpTracerProvider, TracerProvider

from devall.core.errors import SetupError
from devall.telemetry.otel.wanted import HTTP, Signal, Wanted, protocol

PATIENCE = 3.0
"""Seconds that the end of a run waits for what is still to be sent."""
LITTLE_PATIENCE = 1.0
"""Seconds where the endpoint has failed already, or the run was interrupted."""
LONGEST = 300
"""Characters of an error's text that are told."""
_OTLP = {HTTP: "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_PACKAGES = {
    "otlp_proto_http": "devall[otel]",
    "otlp_proto_grpc": "opentelemetry-exporter-otlp-proto-grpc",
}


class Exports:
    """What one run's spans and measurements are gathered by, and sent with.

    Nothing of it is set as the process's own, so that runs side by side, and the application
    around them, do not meet. Sending goes on in threads that never keep the process from
    ending; what the SDK logs of it is told once, and not written over the terminal.
    """

    def __init__(self, wanted: Wanted, environment: Mapping[str, str], version: str) -> None:
        """Make providers for what is wanted, as the environment describes them.

        Raises:
            SetupError: an exporter is unknown, or not installed, or cannot be made.
        """
        self._troubles = _Troubles()
        self._readers: list[Any] = []
        self._processors: list[SpanProcessor] = []
        self._give_up: list[Callable[[], object]] = []
        self._place = _place(environment)
        resource = _resource(environment, version)
        self._troubles.listen()
        try:
            self.traces = self._tracer_provider(wanted.traces, environment, resource)
            self.metrics = self._meter_provider(wanted.metrics, environment, resource)
        except (OSError, RuntimeError, SetupError, TypeError, ValueError) as error:
            self._troubles.stop(is_quiet=False)
            self._give_up = [each.shutdown for each in (*self._processors, *self._readers)]
            self._abandon()
            if isinstance(error, SetupError):
                raise
            raise SetupError(f"the OTEL_* settings cannot be used: {error}") from error
        self.notes = self._troubles.taken()
        """What the SDK found odd in its settings."""

    async def finish(self, *, is_hurried: bool = False) -> str:
        """Send what is left, in bounded time; what went wrong with it, empty: nothing.

        Args:
            is_hurried: Whether somebody wants the process to end.

        Raises:
            asyncio.CancelledError: the task was cancelled, and what is left is lost.
        """
        sending = [_in_thread(each.shutdown) for each in self._processors]
        sending += [_in_thread(partial(each.shutdown, PATIENCE * 1000)) for each in self._readers]
        is_sent = False
        try:
            is_sent = await self._sent(sending, is_hurried=is_hurried)
        finally:
            self._troubles.stop(is_quiet=is_sent)
            if not is_sent:
                self._abandon()
        if is_sent and not self._troubles.is_lost:
            return ""
        patience = LITTLE_PATIENCE if is_hurried else PATIENCE
        why = self._troubles.text or f"it did not take them within {patience:g} s"
        return f"traces or metrics could not be sent to {self._place}: {why}"

    async def _sent(self, sending: Sequence[asyncio.Future[None]], *, is_hurried: bool) -> bool:
        if not sending:
            return True
        _, left = await asyncio.wait(sending, timeout=LITTLE_PATIENCE)
        if left and not self._troubles.text and not is_hurried:
            _, left = await asyncio.wait(left, timeout=PATIENCE - LITTLE_PATIENCE)
        return not left

    def _abandon(self) -> None:
        """Stop sending: no more tries are made."""
        for give_up in self._give_up:
            threading.Thread(target=_quietly(give_up), name="devall-otel-end", daemon=True).start()

    def _tracer_provider(
        self, named: Sequence[str], environment: Mapping[str, str], resource: Resource
    ) -> TracerProvider:
        if not named:
            return NoOpTracerProvider()
        provider = OwnTracerProvider(resource=resource, shutdown_on_exit=False)
        for name in named:
            if name == "console":
                processor: SpanProcessor = SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
            else:
                exporter = _exporter(name, "traces", environment)
                self._give_up.append(exporter.shutdown)
                processor = BatchSpanProcessor(exporter)
            self._processors.append(processor)
            provider.add_span_processor(processor)
        return provider

    def _meter_provider(
        self, named: Sequence[str], environment: Mapping[str, str], resource: Resource
    ) -> MeterProvider:
        if not named:
            return NoOpMeterProvider()
        for name in named:
            if name == "console":
                exporter: Any = ConsoleMetricExporter(out=sys.stderr)
            else:
                exporter = _exporter(name, "metrics", environment)
                self._give_up.append(exporter.shutdown)
            is_reader = isinstance(exporter, MetricReader)
            self._readers.append(exporter if is_reader else PeriodicExportingMetricReader(exporter))
        return OwnMeterProvider(self._readers, resource, shutdown_on_exit=False)


def _exporter(name: str, signal: Signal, environment: Mapping[str, str]) -> Any:
    """An exporter by its name, with the settings that it finds in the environment.

    Raises:
        SetupError: it is unknown, or not installed, or cannot be made.
    """
    entry = name
    if name == "otlp":
        spoken = protocol(environment, signal)
        if spoken not in _OTLP:
            raise SetupError(
                f"OTEL_EXPORTER_OTLP_PROTOCOL is {spoken}, which is not spoken here",
                hint=f"{HTTP}, or grpc",
            )
        entry = _OTLP[spoken]
    found = [*entry_points(group=f"opentelemetry_{signal}_exporter", name=entry)]
    package = _PACKAGES.get(entry)
    if not found:
        raise SetupError(
            f"the exporter of {signal} `{name}` is not installed",
            hint=f"pip install {package}" if package else "`otlp`, `console` or `none`",
        )
    try:
        return found[0].load()()
    except ImportError as error:
        hint = f"pip install {package}" if package else ""
        raise SetupError(f"the exporter of {signal} `{name}`: {error}", hint=hint) from error


def _resource(environment: Mapping[str, str], version: str) -> Resource:
    """Who tells: as the environment says, else devall.

    Each run is an instance of its own, so that the sums of runs side by side in one process
    are not taken for one sum.
    """
    found = Resource.create()
    more: dict[str, str] = {}
    if str(found.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        more |= {"service.name": "devall", "service.version": version}
    if "service.instance.id" not in environment.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        more["service.instance.id"] = str(uuid.uuid4())
    return found.merge(Resource(more))


def _place(environment: Mapping[str, str]) -> str:
    """Where things are sent to, without what may be secret in an address."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    for name in (*names, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        address = environment.get(name, "").strip()
        if address:
            scheme, _, rest = address.partition("://")
            host = (rest or scheme).partition("/")[0].rpartition("@")[2]
            return f"{scheme}://{host}" if rest else host
    return "the collector"


_ERRNO = re.compile(r"\[Errno -?\d+\] ([^\"')>]+)")
"""What the system says, within what a library says of it."""


class _Troubles(logging.Handler):
    """Hears what the SDK logs, and keeps the first word of what was lost.

    As long as it listens, and nobody has set up logging, nothing of it gets to stderr. An
    application that has set it up gets the records as well.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        """What went wrong first."""
        self.is_lost = False
        """Whether something will not be sent any more."""

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        reason = _ERRNO.search(text)
        self.text = self.text or (reason[1] if reason else text[:LONGEST])
        self.is_lost = self.is_lost or record.levelno >= logging.ERROR or "dropping" in text.lower()

    def listen(self) -> None:
        """Begin to hear."""
        logging.getLogger("opentelemetry").addHandler(self)

    def taken(self) -> tuple[str, ...]:
        """What was heard so far, which is forgotten by that."""
        heard, self.text, self.is_lost = self.text, "", False
        return (heard,) if heard else ()

    def stop(self, *, is_quiet: bool) -> None:
        """Hear no more.

        Args:
            is_quiet: Whether nothing is under way any more; else a thread that still waits for
                an endpoint may have a last word, which nobody is to read.
        """
        logger = logging.getLogger("opentelemetry")
        known = any(isinstance(each, logging.NullHandler) for each in logger.handlers)
        if not is_quiet and not known:
            logger.addHandler(logging.NullHandler())
        logger.removeHandler(self)


def _in_thread(work: Callable[[], object]) -> asyncio.Future[None]:
    """Done once the work is; the thread keeps neither the loop nor the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def run() -> None:
        _quietly(work)()
        with contextlib.suppress(RuntimeError):  # a closed loop has nobody left to tell
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="devall-otel-send", daemon=True).start()
    return future


def _quietly(work: Callable[[], object]) -> Callable[[], None]:
    """The work, of which the log tells what goes wrong."""

    def run() -> None:
        try:
            work()
        # What only looks on must not end a run, whatever an exporter raises.
        except Exception:
            logging.getLogger("opentelemetry.devall").exception("telemetry")

    return run
