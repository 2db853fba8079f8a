"""A language model that answers in JSON before a deadline, or says why it did not."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar, cast

import httpx
import openai
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from openai.types.chat import ChatCompletionChunk

from ..query import TokenUse
from .deadline import Deadline
from .failure import LlmError, LlmFault, add_tokens
from .faults import faults
from .loop import LoopThread
from .ports import REPAIR, JsonReply, Schema, parsed

T = TypeVar("T")
_log = logging.getLogger(__name__)
_NO_KEY = "none"


@dataclass
class _Served:
    """What the server said of itself.

    Attributes:
        model: name as served.
        context_window: tokens of prompt and answer; None where the server does not say.
    """

    model: str
    context_window: int | None


@dataclass(frozen=True)
class _Ask(Generic[T]):
    messages: Sequence[ChatMessage]
    schema: Schema
    check: Callable[[Any], T] | None
    max_tokens: int
    repair: str


class ServedLlm:
    """A Qwen (or another chat model) behind an OpenAI-protocol server such as vLLM.

    Answers are streamed, so that a cut in mid-answer is told from an answer; the server enforces the JSON
    schema where it can (``response_format``), and the answer is checked all the same. No call is retried
    except one repair of an invalid answer, and all calls of a question share its deadline. Questions hold
    patients' text, so they go to this address and nowhere else: no redirect is followed, and no proxy of the
    environment is used. Safe to use from several threads and event loops at once. Source: ours.

    Args:
        base_url: of the server, ending in ``/v1``.
        model: name as served; asked from the server at the first question where None.
        api_key: bearer token.
        context_window: tokens of prompt and answer; the server's own limit where that is smaller.
        max_tokens: of one answer.
        temperature: 0 for the most likely answer.
        deadline_s: used where a call brings no deadline.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        context_window: int = 4096,
        max_tokens: int = 400,
        temperature: float = 0.0,
        deadline_s: float = 30.0,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.max_tokens = max_tokens
        self.deadline_s = deadline_s
        self._asked_model = model
        self._api_key = api_key
        self._context_window = context_window
        self._temperature = temperature
        self._thread = LoopThread("wardround-llm")
        self._llm: OpenAILike | None = None
        self._served: _Served | None = None

    @property
    def model(self) -> str:
        """Name as served; the address before the server was first asked."""
        return self._llm.model if self._llm else (self._asked_model or self.base_url)

    @property
    def context_window(self) -> int:
        """Tokens that prompt and answer may have together."""
        own = self._served.context_window if self._served else None
        return min(self._context_window, own) if own else self._context_window

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
        """Ask once, repair once, and give back what ``check`` made of the JSON.

        Args:
            messages: the conversation.
            schema: JSON schema of the answer, with a ``title``.
            deadline: of the whole question; ``deadline_s`` from now where None.
            check: turns the parsed JSON into the value, raising ValueError to refuse it; its message is
                shown to the model in the repair.
            max_tokens: of one answer, where it differs from the setting.
            repair: what is said after a refused answer, with ``{complaint}``.

        Raises:
            LlmError: with the fault.
        """
        ask = _Ask(messages, schema, check, max_tokens or self.max_tokens, repair)
        return self._thread.run(self._complete(ask, deadline or self._deadline()))

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
        ask = _Ask(messages, schema, check, max_tokens or self.max_tokens, repair)
        return await self._thread.arun(self._complete(ask, deadline or self._deadline()))

    def probe(self, deadline: Deadline | None = None) -> None:
        """Ask the server for its model and limits now, rather than at the first question.

        Raises:
            LlmError: with the fault.
        """
        self._thread.run(self._probe(deadline or self._deadline()))

    async def aprobe(self, deadline: Deadline | None = None) -> None:
        """:meth:`probe` without blocking the event loop."""
        await self._thread.arun(self._probe(deadline or self._deadline()))

    def as_llama_index(self) -> OpenAILike:
        """A plain LlamaIndex LLM for the same server, for use outside wardround's engines."""
        return self._new_client(self.model)

    def _deadline(self) -> Deadline:
        return Deadline.after(self.deadline_s)

    async def _probe(self, deadline: Deadline) -> None:
        with faults(deadline):
            async with asyncio.timeout(deadline.left_s):
                await self._discover()

    async def _complete(self, ask: _Ask[T], deadline: Deadline) -> JsonReply[T]:
        spent = TokenUse()
        talk = list(ask.messages)
        complaint, fault = "", LlmFault.INVALID
        for _ in range(2):
            text = ""
            try:
                with faults(deadline):
                    async with asyncio.timeout(deadline.left_s):
                        await self._discover()
                        text, finish, used = await self._stream(talk, ask.schema, ask.max_tokens)
            except LlmError as error:
                if error.fault in {LlmFault.HTTP, LlmFault.REFUSED}:
                    self._served = None  # a restarted server may have another model
                raise LlmError(error.fault, error.detail, add_tokens(spent, error.tokens)) from error
            spent = add_tokens(spent, used)
            if finish == "length":
                complaint, fault = f"the answer was longer than {ask.max_tokens} tokens", LlmFault.CUT_OFF
            else:
                try:
                    return JsonReply(parsed(text, ask.check), spent)
                except ValueError as error:
                    complaint, fault = str(error), LlmFault.INVALID
            _log.info("answer of %s refused (%s)", self.model, fault)
            plea = ChatMessage(role="user", content=ask.repair.format(complaint=complaint))
            talk = [*ask.messages, ChatMessage(role="assistant", content=text[:400]), plea]
        raise LlmError(fault, f"after one repair: {complaint}", spent)

    async def _stream(
        self, messages: list[ChatMessage], schema: Schema, max_tokens: int
    ) -> tuple[str, str, TokenUse]:
        assert self._llm is not None  # noqa: S101  # _discover made it
        form = {"name": str(schema.get("title", "answer")), "schema": dict(schema), "strict": True}
        parts: list[str] = []
        finish: str | None = None
        used = TokenUse()
        stream = await self._llm.astream_chat(
            messages,
            max_tokens=max_tokens,
            response_format={"type": "json_schema", "json_schema": form},
            stream_options={"include_usage": True},
        )
        async for piece in stream:
            parts.append(piece.delta or "")
            chunk = cast("ChatCompletionChunk", piece.raw)
            if chunk.usage:
                used = TokenUse(prompt=chunk.usage.prompt_tokens, output=chunk.usage.completion_tokens)
            if chunk.choices and chunk.choices[0].finish_reason:
                finish = chunk.choices[0].finish_reason
        if finish is None:
            raise LlmError(LlmFault.CUT_OFF, "the stream ended in mid-answer", used)
        return "".join(parts), finish, used

    async def _discover(self) -> None:
        if self._served is not None:
            return
        client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._api_key or _NO_KEY,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(**_straight()),
        )
        async with client:
            try:
                listed = (await client.models.list()).data
            except openai.APIStatusError:
                if self._asked_model is None:
                    raise
                listed = []
        wanted = [one for one in listed if one.id == self._asked_model] if self._asked_model else listed
        if listed and not wanted:
            names = ", ".join(sorted(one.id for one in listed))
            raise LlmError(LlmFault.HTTP, f"the server has no model {self._asked_model!r}; it has {names}")
        if not wanted and self._asked_model is None:
            raise LlmError(LlmFault.HTTP, "the server lists no model; set llm.model")
        name = self._asked_model or wanted[0].id
        limit = (wanted[0].model_extra or {}).get("max_model_len") if wanted else None
        self._llm = self._new_client(name)
        self._served = _Served(name, limit if isinstance(limit, int) and limit > 0 else None)

    def _new_client(self, name: str) -> OpenAILike:
        # max_tokens stays unset here: LlamaIndex lets a client-wide value override the call's own.
        return OpenAILike(
            model=name,
            api_base=self.base_url,
            api_key=self._api_key or _NO_KEY,
            is_chat_model=True,
            context_window=self.context_window,
            temperature=self._temperature,
            max_retries=0,
            timeout=3600.0,
            http_client=openai.DefaultHttpxClient(**_straight()),
            async_http_client=openai.DefaultAsyncHttpxClient(**_straight()),
        )


def _straight() -> dict[str, Any]:
    """What keeps an HTTP client to the address it is given."""
    return {"follow_redirects": False, "trust_env": False, "verify": _trusted()}


@cache
def _trusted() -> ssl.SSLContext:
    """Certificates as the environment names them; loading them takes long enough to do it once."""
    return httpx.create_ssl_context()
