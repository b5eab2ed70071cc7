"""Memory stores of a graph."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from devall.config.base import ConfigModel, Count, JsonObject, OneOrMany, Text


class EmbeddingConfig(ConfigModel):
    """How texts become vectors."""

    provider: str = "openai"
    """`openai` (any endpoint that speaks its protocol), or `local` (in process)."""
    model: str = ""
    """The model's name; empty = the provider's own choice."""
    api_key: str | None = None
    """Key of the endpoint."""
    base_url: str | None = None
    """URL of the endpoint."""
    params: JsonObject = Field(default_factory=dict)
    """Sent with every request as given."""


class FileSource(ConfigModel):
    """Files that are read into a store."""

    path: Text
    """A file or a folder."""
    file_types: OneOrMany[str] = ()
    """Suffixes that are read, such as `.md`; empty = all text files."""
    recursive: bool = True
    """Whether folders inside of the folder are read as well."""
    encoding: str = "utf-8"
    """Encoding of the files."""


class SimpleStoreConfig(ConfigModel):
    """Items found again by likeness."""

    memory_path: str | None = None
    """A file, or `auto`; absent = kept for this run only."""
    embedding: EmbeddingConfig | None = None
    """How likeness is measured."""


class FileStoreConfig(ConfigModel):
    """Files found again by likeness; read only."""

    index_path: str | None = None
    """Where the index is kept."""
    file_sources: OneOrMany[FileSource]
    """What is read."""
    embedding: EmbeddingConfig | None = None
    """How likeness is measured."""

    @classmethod
    def normalised(cls, data: dict[str, object]) -> dict[str, object]:
        """The block with `index_path`, which old files call `memory_path`."""
        if "memory_path" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "memory_path"}
        return {"index_path": data["memory_path"]} | rest


class BlackboardStoreConfig(ConfigModel):
    """A list of items, newest first."""

    memory_path: str | None = None
    """A file, or `auto`; absent = kept for this run only."""
    max_items: Count = 1000
    """The newest so many are kept."""


class Mem0StoreConfig(ConfigModel):
    """The memory service mem0."""

    api_key: str | None = None
    """Key of the service."""
    user_id: str | None = None
    """Whose memories."""
    agent_id: str | None = None
    """Which agent's memories."""
    org_id: str | None = None
    """Organisation at the service."""
    project_id: str | None = None
    """Project at the service."""


class StoreBase(ConfigModel):
    """What every store has."""

    name: Text
    """What agents call it."""


class SimpleStore(StoreBase):
    """Items found again by likeness."""

    type: Literal["simple"] = "simple"
    """The kind of store."""
    config: SimpleStoreConfig = Field(default_factory=SimpleStoreConfig)
    """Its settings."""


class FileStore(StoreBase):
    """Files found again by likeness."""

    type: Literal["file"] = "file"
    """The kind of store."""
    config: FileStoreConfig
    """Its settings."""


class BlackboardStore(StoreBase):
    """A list that agents share."""

    type: Literal["blackboard"] = "blackboard"
    """The kind of store."""
    config: BlackboardStoreConfig = Field(default_factory=BlackboardStoreConfig)
    """Its settings."""


class Mem0Store(StoreBase):
    """The memory service mem0."""

    type: Literal["mem0"] = "mem0"
    """The kind of store."""
    config: Mem0StoreConfig = Field(default_factory=Mem0StoreConfig)
    """Its settings."""


MemoryStore: TypeAlias = Annotated[
    SimpleStore | FileStore | BlackboardStore | Mem0Store, Field(discriminator="type")
]
"""A memory store, by its `type`."""
