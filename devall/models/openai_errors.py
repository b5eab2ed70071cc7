"""The table from `openai`'s exceptions to ours."""

from __future__ import annotations

from devall.models.openai_import import openai
from devall.models.transport import (
    TRANSPORT,
    Table,
    of_body,
    of_connection,
    of_refusal,
    of_status,
    of_stream,
    of_timeout,
)

TABLE: Table = {
    openai.APITimeoutError: of_timeout,
    openai.APIConnectionError: of_connection,
    openai.APIResponseValidationError: of_body,
    openai.BadRequestError: of_status,
    openai.AuthenticationError: of_status,
    openai.OAuthError: of_status,
    openai.PermissionDeniedError: of_status,
    openai.NotFoundError: of_status,
    openai.ConflictError: of_status,
    openai.UnprocessableEntityError: of_status,
    openai.RateLimitError: of_status,
    openai.InternalServerError: of_status,
    openai.APIStatusError: of_status,
    openai.APIError: of_stream,
    openai.LengthFinishReasonError: of_body,
    openai.ContentFilterFinishReasonError: of_body,
    openai.InvalidWebhookSignatureError: of_refusal,
    openai.WebSocketConnectionClosedError: of_connection,
    openai.WebSocketQueueFullError: of_connection,
    openai.OpenAIError: of_refusal,
    **TRANSPORT,
}
"""Every exception that `openai` exports, and those of its transport that pass through it."""
