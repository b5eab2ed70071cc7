"""Names of attributes and instruments: those of the GenAI conventions, and our own.

The conventions moved out of OpenTelemetry's own after their version 1.41; these are the names
that both know. Where the newer ones have another name for the same thing (a workflow's name),
both are set.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - the name of an attribute
AGENT = "gen_ai.agent.name"
WORKFLOW = "gen_ai.workflow.name"
CONVERSATION = "gen_ai.conversation.id"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR = "error.type"
SERVER = "server.address"
PORT = "server.port"
TRANSPORT = "network.transport"
MCP_METHOD = "mcp.method.name"

RUN = "devall.run_id"
FILE = "devall.workflow"
STATUS = "devall.status"
NODE = "devall.node"
KIND = "devall.node.type"
PATH = "devall.path"
VISIT = "devall.visit"
ROUND = "devall.loop.round"
UNIT = "devall.unit"
UNITS = "devall.units"
LAYER = "devall.layer"
TURN = "devall.turn"
ATTEMPT = "devall.attempt"
REPLAYED = "devall.replayed_calls"
CONTINUED = "devall.continued"
PROCESS = "devall.turn_of_run"
USD = "devall.cost.usd"
MODEL_CALLS = "devall.model_calls"
TOOL_CALLS = "devall.tool_calls"
INPUT_SUM = "devall.input_tokens"
OUTPUT_SUM = "devall.output_tokens"
LIVE = "live_calls"
"""Counted, and not told: calls that were really made."""

TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105 - the name of an instrument
OPERATION_DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK_TIME = "gen_ai.client.operation.time_to_first_chunk"
TOOL_DURATION = "gen_ai.execute_tool.duration"
RUN_DURATION = "devall.run.duration"
NODE_DURATION = "devall.node.duration"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}


def provider_name(provider: str) -> str:
    """The name of a provider as the conventions have it; of others our own."""
    return _PROVIDERS.get(provider, provider)
