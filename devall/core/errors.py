"""What can go wrong, as one tree.

```
DevallError                 code, exit_code, hint
  UsageError                the call itself is wrong (2)
  ConfigError               the file is wrong; carries all diagnostics; nothing has run (3)
  SetupError                a key, command, server or extra is missing (4)
  RunError                  the run went wrong (1)
    NodeError               which node; the cause is __cause__
    FunctionError           a condition or processor of an edge raised
    TemplateError           a template cannot be filled in with what came
    JournalError            what was done cannot be kept: a full disk, a locked file
      RunTakenOver          another process has gone on with the run
    RecordedFailure         what went wrong in a recorded run, in its replay
    NotRecorded             a replay wants what its recording does not hold
    ModelError
      ModelRefused          repeating cannot help: 400, 401, 403, 404, quota
        ContextOverflow     the request is longer than the model's window
      ModelUnavailable      repeating may help: 429, 5xx, connection, timeout
      BadModelResponse      an answer that is no answer
    ToolError
      ToolNotFound          no such tool, or not for this node
      ToolArguments         arguments that do not fit
      ToolFailed            the tool ran and failed
      ToolTimeout           outcome unknown
    ToolInDoubt             a call that was under way when the run was interrupted
    LimitReached            a bound of the file or the command line (5 for money, else 6)
    PromptTooLong           a request that cannot fit the model's window; it was not sent
    NoProgress              an agent repeats itself
    OutputTruncated         a model's tool calls were cut off, and again
  AnswerNeeded              a human's answer is missing (75)
  RunCancelled              interrupted (130) or terminated (143)
```

Constructors take facts; each class writes its sentence once, in `__str__`'s one source,
the text handed to `Exception`. Foreign exceptions become these at one door per library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from devall.core.usage import TokenUsage

if TYPE_CHECKING:
    from devall.core.diagnostics import Diagnostic


class DevallError(Exception):
    """The root: everything devall raises on purpose."""

    code: ClassVar[str] = "error"
    """Stable name of the kind of failure, for scripts."""
    exit_code: int = 1
    """What the command line ends with."""
    hint: str = ""
    """What would be right, in one sentence; may be empty."""

    def __init__(self, text: str, *, hint: str = "") -> None:
        super().__init__(text)
        if hint:
            self.hint = hint


class UsageError(DevallError):
    """The command or call is wrong: an unknown node in an option, a missing file."""

    code = "usage"
    exit_code = 2


class ConfigError(DevallError):
    """The workflow file is wrong; all that was found is in `diagnostics`."""

    code = "config"
    exit_code = 3

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class SetupError(DevallError):
    """Something outside the file is missing: a key, a command, a server, an extra."""

    code = "setup"
    exit_code = 4


class RunError(DevallError):
    """The run went wrong after it had begun."""

    code = "failed"


class NodeError(RunError):
    """A node failed; `__cause__` is why."""

    def __init__(self, node: str, path: str, cause: BaseException) -> None:
        self.node = node
        self.path = path
        self.cause = cause
        super().__init__(f"node {node}: {cause}", hint=getattr(cause, "hint", ""))
        self.exit_code = getattr(cause, "exit_code", 1)

    @property
    def cause_code(self) -> str:
        """The code of what went wrong inside the node."""
        return self.cause.code if isinstance(self.cause, DevallError) else "exception"


class NodeTimeout(RunError):
    """A node's run took longer than its `timeout`."""

    code = "timeout"
    exit_code = 6

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"did not finish within its timeout of {seconds:g} s",
            hint="raise the node's `timeout`, or make the work smaller",
        )


class FunctionError(RunError):
    """A user's condition or processor raised."""

    code = "function"

    def __init__(self, kind: str, name: str, where: str, cause: BaseException) -> None:
        self.name = name
        super().__init__(
            f"{kind} function {name} of {where} raised {type(cause).__name__}: {cause}"
        )


class TemplateError(RunError):
    """The template of a node cannot be filled in with what came."""

    code = "template"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the template cannot be filled in: {problem}",
            hint="`{{ input }}` is the text of the last input; `input | fromjson` reads it as JSON",
        )


class ExpressionError(RunError):
    """The expression of an edge has no value for a message."""

    code = "expression"

    def __init__(self, when: str, where: str, problem: str) -> None:
        self.when = when
        super().__init__(
            f"the condition `{when}` of {where} cannot be decided: {problem}",
            hint="compare like with like: `number(x)` makes a number of a text",
        )


class JournalError(RunError):
    """What was done cannot be kept; what was kept before stays."""

    code = "journal"

    def __init__(self, file: str, problem: str, *, hint: str = "") -> None:
        super().__init__(
            f"the journal {file} cannot be written: {problem}",
            hint=hint or "make room or free the file, then go on with `devall resume`",
        )


class RunTakenOver(JournalError):
    """Another process has gone on with the run since this one was last heard of."""

    code = "taken_over"

    def __init__(self, run_id: str, file: str) -> None:
        RunError.__init__(
            self,
            f"run {run_id} was taken over by another process: nothing more is written to {file}",
            hint=f"see how it went on: devall runs show {run_id}",
        )


class RecordedFailure(RunError):
    """An error that a recorded run met, met again in its replay."""

    def __init__(self, code: str, exit_code: int, text: str, hint: str) -> None:
        super().__init__(text, hint=hint)
        self.code = code  # pyright: ignore[reportAttributeAccessIssue] -- that of the first time
        self.exit_code = exit_code


class NotRecorded(RunError):
    """A replay came to an effect that its recording does not hold; nothing was called."""

    code = "not_recorded"

    def __init__(self, key: str, nearest: str = "", difference: str = "", *, end: str = "") -> None:
        self.key = key
        self.nearest = nearest
        """Key of the recorded step that is most like it; empty: there is none of its kind."""
        self.difference = difference
        """Lines of a diff from the nearest one's request to this one's."""
        what = f"; nearest is {nearest}" if nearest else ""
        what += f"; the recorded run ended there: {end}" if end and not nearest else ""
        lines = f":\n{difference}" if difference else ""
        super().__init__(
            f"the recording holds no {key}{what}{lines}",
            hint="make the calls of that node anew with `--live NODE+`, or record a new run",
        )


class ModelError(RunError):
    """A model call failed."""

    code = "model"

    def __init__(
        self,
        text: str,
        *,
        provider: str = "",
        model: str = "",
        url: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        usage: TokenUsage | None = None,
        hint: str = "",
    ) -> None:
        self.provider = provider
        self.model = model
        self.url = url
        self.status = status
        self.retry_after = retry_after
        """Seconds the endpoint asks to wait, where it said so."""
        self.usage = usage
        """What the attempt was charged all the same; None: nobody knows."""
        where = f" ({model} at {url})" if url else (f" ({model})" if model else "")
        super().__init__(text + where, hint=hint)


class ModelRefused(ModelError):
    """The endpoint refused, and would refuse again."""

    code = "model_refused"


class ContextOverflow(ModelRefused):
    """The endpoint says that the request is longer than the model's window."""

    code = "context_length"


class ModelUnavailable(ModelError):
    """The endpoint could not be reached or is overloaded; repeating may help."""

    code = "model_unavailable"


class BadModelResponse(ModelError):
    """The endpoint answered with something that is no model's answer."""

    code = "bad_response"


class ToolError(RunError):
    """A tool call failed; an agent's loop turns it into an error result."""

    code = "tool"


class ToolNotFound(ToolError):
    """No tool of that name is offered to this node."""

    code = "tool_not_found"


class ToolArguments(ToolError):
    """The arguments of a call are no JSON object, or do not fit the tool's schema."""

    code = "tool_arguments"


class ToolFailed(ToolError):
    """The tool ran and failed."""

    code = "tool_failed"


class ToolTimeout(ToolError):
    """A tool did not answer in time: whether it did its work is unknown."""

    code = "tool_timeout"


class ToolInDoubt(RunError):
    """A tool was called when the run was interrupted: whether it did its work is unknown."""

    code = "in_doubt"

    def __init__(self, tool: str, arguments: str, key: str) -> None:
        self.tool = tool
        self.key = key
        shown = arguments if len(arguments) <= 300 else f"{arguments[:300]}..."
        super().__init__(
            f"tool {tool} was called with {shown} when the run was interrupted, and whether it"
            " did its work is not known",
            hint="look, then go on with `--in-doubt retry` (call it again) or `--in-doubt ask`;"
            " for tools that may be repeated set `idempotent: true` on their source",
        )


class LimitReached(RunError):
    """A bound was reached; what was done is kept."""

    code = "limit_reached"
    exit_code = 6

    def __init__(
        self, limit: str, bound: float, where: str = "", *, used: str = "", hint: str = ""
    ) -> None:
        self.limit = limit
        self.bound = bound
        self.where = where
        """What is bounded: `node S/X`, the name of a subgraph's node, `loop A, B`; empty: the
        run."""
        place = f" of {where}" if where else ""
        super().__init__(
            f"limit {limit}{place} reached ({bound:g})" + (f": {used}" if used else ""),
            hint=hint or f"raise `{limit}` if that much is meant",
        )
        if limit == "max_usd":
            self.exit_code = 5


class PromptTooLong(RunError):
    """A request cannot fit its model's window, whatever may be cut; it was not sent."""

    code = "prompt_too_long"

    def __init__(self, model: str, tokens: int, window: int, source: str) -> None:
        self.model = model
        self.tokens = tokens
        self.window = window
        super().__init__(
            f"the prompt has about {tokens:,} tokens, and {source} leaves {window:,} for it"
            f" (model {model}); it was not sent",
            hint="make the inputs or `role` shorter (an upstream node could summarise), use a"
            " smaller `context_window`, `max_result_chars` on the tools, fewer tools, or a model"
            " with a larger window; `history.max_tokens` says how large it really is",
        )


class NoProgress(RunError):
    """An agent made the same call with the same result again and again."""

    code = "no_progress"

    def __init__(self, tool: str, times: int) -> None:
        self.tool = tool
        super().__init__(
            f"the model called {tool} {times} times in a row with the same arguments"
            " and the same result",
            hint="say in `role` when to stop, or set `params.repeat_limit` to 0 if the tool polls",
        )


class OutputTruncated(RunError):
    """A model's answer was cut off in the middle of its tool calls, twice in a row."""

    code = "output_truncated"

    def __init__(self, model: str, tokens: int | None = None) -> None:
        self.model = model
        self.tokens = tokens
        at = f" at {tokens} tokens" if tokens else ""
        super().__init__(
            f"the tool calls of {model} were cut off{at} twice in a row (finish_reason length)",
            hint="raise `params.max_tokens`, or ask for smaller pieces in `role`",
        )


class AnswerNeeded(DevallError):
    """A human's answer is missing and nobody can be asked."""

    code = "waiting"
    exit_code = 75

    def __init__(self, questions: Sequence[tuple[str, str]]) -> None:
        self.questions = tuple(questions)
        """(path of the human node's run, what is asked), for each open question."""
        names = ", ".join(path for path, _ in self.questions)
        super().__init__(f"waiting for a human: {names}")


class RunCancelled(DevallError):
    """The run was interrupted (SIGINT) or terminated (SIGTERM)."""

    code = "cancelled"
    exit_code = 130

    def __init__(self, signal: str = "SIGINT") -> None:
        self.signal = signal
        super().__init__("interrupted" if signal == "SIGINT" else "terminated")
        if signal != "SIGINT":
            self.exit_code = 143
