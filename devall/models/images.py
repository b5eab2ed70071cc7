"""Models that take no images: told by the workflow, by the provider, or by their own refusal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from devall.core.errors import ModelError
from devall.core.messages import MediaPart, Message, Part, TextPart
from devall.models.base import ChatModel, ChatReply, ChatRequest, OnText, WrappedModel

_ABOUT_IMAGES = re.compile(
    r"\bimages?\b|image_url|input_image|\bvision\b|multi-?modal|mmproj|content must be a string",
    re.IGNORECASE,
)
_ABOUT_THESE = re.compile(
    r"too (large|big|many)|at most [1-9]|\bsize\b|dimension|resolution|corrupt|base64|mime|invalid image"
    r"|unsupported image|image (format|type)|(fail|unable|could not|cannot|can't|error)\w*( to)?( be)?"
    r" (process|decod|download|fetch|load|read|identif)",
    re.IGNORECASE,
)
"""The images that were sent are refused, and others might not be."""

_REFUSING = frozenset({400, 404, 415, 422, 500, 501})
"""Statuses with which endpoints refuse images."""
_NONE = "takes no images"
_THESE = "refused these images"

_takes_none: set[tuple[str, str, str]] = set()
"""Models that have refused images in this process: provider, URL, name."""


@dataclass(slots=True)
class ImageGate(WrappedModel):
    """A model that is sent images as long as it takes them; else their names stand in the text.

    An endpoint that refuses a request for its images is asked once more without them. That it
    takes none is remembered for the whole process; a complaint about one image is not.
    """

    model: ChatModel
    takes: bool | None = None
    """None: it is found out."""
    _has_told: bool = field(default=False, init=False)

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt, or two where the first is refused for its images.

        Raises:
            ModelError: as the model itself.
            SetupError: as the model itself.
        """
        if self.takes or not any(map(_has_image, request.messages)):
            return await self.model.complete(request, on_text)
        key = self.provider, self.url, self.name
        why = _NONE
        if self.takes is None and key not in _takes_none:
            try:
                return await self.model.complete(request, on_text)
            except ModelError as error:
                why = _why_refused(error)
                if not why:
                    raise
        without = tuple(_without_images(message, why) for message in request.messages)
        reply = await self.model.complete(replace(request, messages=without), on_text)
        if self.takes is None and why == _NONE:
            _takes_none.add(key)
        return replace(reply, notes=(*reply.notes, *self._told(why)))

    def _told(self, why: str) -> tuple[str, ...]:
        """What a user should know of images that were left out: said once."""
        if self._has_told:
            return ()
        self._has_told = True
        return (
            f"{self.name} of provider {self.provider} {why}: they were left out, and it sees their"
            " names only (`params.images` says whether a model takes them)",
        )


def _has_image(message: Message) -> bool:
    return any(_is_image(part) for part in message.parts)


def _is_image(part: Part) -> bool:
    return isinstance(part, MediaPart) and part.type == "image"


def _without_images(message: Message, why: str) -> Message:
    """The message, a line of text in each image's place."""
    if not _has_image(message):
        return message
    parts = [_note(part, why) if isinstance(part, MediaPart) else part for part in message.parts]
    return replace(message, content=tuple(parts))


def _note(part: MediaPart, why: str) -> Part:
    if part.type != "image":
        return part
    name = part.name or part.attachment or part.url
    return TextPart(f"[image {name}: left out, since this model {why}]")


def _why_refused(error: ModelError) -> str:
    """What an endpoint has against the images of a request; empty: it refused for other reasons."""
    text = str(error).replace(error.url or " ", "").replace(error.model or " ", "")
    if error.status not in _REFUSING or not _ABOUT_IMAGES.search(text):
        return ""
    if error.status >= 500:  # a crash is none, whatever it speaks of
        return _NONE if "not support" in text else ""
    return _THESE if _ABOUT_THESE.search(text) else _NONE
