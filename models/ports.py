"""The port every language model stands behind, and how its text becomes a checked value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from llama_index.core.llms import ChatMessage

from ..query import TokenUse
from .deadline import Deadline

T = TypeVar("T")
Schema = Mapping[str, Any]
REPAIR = "That answer cannot be used: {complaint}. Answer again with the JSON object alone."


class JsonReply(NamedTuple, Generic[T]):
    """A checked answer and what it cost.

    Attributes:
        value: what the check made of the JSON.
        tokens: of all tries together.
    """

    value: T
    tokens: TokenUse


class JsonLlm(Protocol):
    """A chat model that answers in checked JSON before a deadline, or raises ``LlmError`` saying why not."""

    max_tokens: int
    deadline_s: float

    @property
    def model(self) -> str:
        """Who writes."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens of prompt and answer together."""
        ...

    def probe(self, deadline: Deadline | None = None) -> None:
        """Find out name and limits now."""
        ...

    async def aprobe(self, deadline: Deadline | None = None) -> None:
        """:meth:`probe` without blocking the event loop."""
        ...

    def complete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Schema,
        *,
        deadline: Deadline | None = None,
        check: Callable[[Any], T] | None = None,
        max_tokens: int | None = None,
        repair: str = REPAIR,
    ) -> JsonReply[T]:
        """Ask once, repair once, and give back what ``check`` made of the JSON."""
        ...

    async def acomplete_json(
        self,
        messages: Sequence[ChatMessage],
        schema: Schema,
        *,
        deadline: Deadline | None = None,
        check: Callable[[Any], T] | None = None,
        max_tokens: int | None = None,
        repair: str = REPAIR,
    ) -> JsonReply[T]:
        """:meth:`complete_json` without blocking the event loop."""
        ...


def parsed(text: str, check: Callable[[Any], T] | None) -> T:
    """The JSON in a model's text, checked.

    A raw control character inside a string and a code fence around the whole are forgiven.

    Raises:
        ValueError: it is no JSON, or ``check`` refuses it; the message is fit to show to the model.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].rsplit("```", 1)[0]
    try:
        value = json.loads(text, strict=False)
        return check(value) if check else value
    except (ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from error
