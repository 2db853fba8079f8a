"""vLLM in this process, through LlamaIndex's ``Vllm``: for batch work on a machine of one's own."""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from llama_index.core.llms import ChatMessage
from llama_index.llms.vllm import Vllm

from ..errors import ModelError
from ..query import TokenUse
from ..settings import LlmSettings
from .bge import require_files, stay_offline
from .deadline import Deadline
from .failure import LlmError, LlmFault, add_tokens
from .ports import REPAIR, JsonReply, Schema, parsed

T = TypeVar("T")

# Its exit hook imports torch, which prints a traceback where torch is not installed.
atexit.unregister(Vllm.close)


class LocalVllm(Vllm):
    """LlamaIndex's ``Vllm`` for the vLLM of today, which no longer knows ``best_of``."""

    @property
    def _model_kwargs(self) -> dict[str, Any]:
        kept: dict[str, Any] = super()._model_kwargs
        kept.pop("best_of", None)
        return kept

    def write(self, prompt: str, **sampling: Any) -> tuple[str, str | None, TokenUse]:
        """Complete a prompt; text, finish reason and tokens (``complete`` gives the text alone)."""
        from vllm import SamplingParams  # noqa: PLC0415  # not installed everywhere

        (made,) = self._client.generate(
            [prompt], SamplingParams(**self._get_all_kwargs(**sampling)), use_tqdm=False
        )
        (best,) = made.outputs
        used = TokenUse(prompt=len(made.prompt_token_ids or ()), output=len(best.token_ids))
        return best.text, best.finish_reason, used

    def close_engine(self) -> None:
        """Stop the engine and free its memory."""
        self._client = None


class InProcessLlm:
    """A chat model in a local folder, run by vLLM in this process; the same port as a served one.

    One question at a time. A generation that runs past its deadline is reported as such and goes on in the
    background until it ends; a server (``ServedLlm``) can be hung up on. Nothing is downloaded.

    Args:
        path: folder with weights, tokenizer and chat template.
        context_window: tokens of prompt and answer.
        max_tokens: of one answer.
        temperature: 0 for the most likely answer.
        deadline_s: used where a call brings no deadline; loading the model does not count.
        **engine: arguments of ``vllm.LLM``.

    Raises:
        ModelError: vLLM is not installed, or the folder is not whole.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context_window: int = 4096,
        max_tokens: int = 400,
        temperature: float = 0.0,
        deadline_s: float = 30.0,
        **engine: Any,
    ) -> None:
        self.path = Path(path)
        require_files(self.path, ("config.json", "tokenizer_config.json"), "chat")
        if importlib.util.find_spec("vllm") is None:
            raise ModelError(
                f"{self.path}: a model in this process needs vLLM; install it, or serve it: llm.base_url"
            )
        self.context_window = context_window
        self.max_tokens = max_tokens
        self.deadline_s = deadline_s
        self._temperature = temperature
        self._engine = engine
        self._lock = threading.Lock()
        self._llm: LocalVllm | None = None
        self._as_prompt: Callable[[Sequence[ChatMessage]], str]

    @classmethod
    def from_settings(cls, settings: LlmSettings) -> InProcessLlm:
        """The model whose folder the settings name.

        Raises:
            ModelError: vLLM is not installed, or the folder is not whole.
        """
        if settings.path is None:
            raise ModelError("llm.path is not set")
        return cls(
            settings.path,
            context_window=settings.context_window,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            deadline_s=settings.deadline_s,
        )

    @property
    def model(self) -> str:
        """Name of the folder."""
        return self.path.name

    def as_llama_index(self) -> LocalVllm:
        """The LlamaIndex LLM itself; loads the model.

        Raises:
            ModelError: vLLM cannot load it.
        """
        with self._lock:
            return self._loaded()

    def probe(self, deadline: Deadline | None = None) -> None:
        """Load the model now rather than at the first question; takes as long as it takes.

        Raises:
            LlmError: vLLM cannot load it.
        """
        del deadline
        try:
            self.as_llama_index()
        except ModelError as error:
            raise LlmError(LlmFault.ABSENT, str(error)) from error

    async def aprobe(self, deadline: Deadline | None = None) -> None:
        """:meth:`probe` without blocking the event loop."""
        await asyncio.to_thread(self.probe, deadline)

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
        """Ask once, repair once; see ``ServedLlm.complete_json``.

        Raises:
            LlmError: with the fault.
        """
        self.probe()
        deadline = deadline or Deadline.after(self.deadline_s)
        limit = max_tokens or self.max_tokens
        spent, talk = TokenUse(), list(messages)
        complaint, fault = "", LlmFault.INVALID
        for _ in range(2):
            text, finish, used = self._write_before(deadline, talk, schema, limit)
            spent = add_tokens(spent, used)
            if finish == "length":
                complaint, fault = f"the answer was longer than {limit} tokens", LlmFault.CUT_OFF
            else:
                try:
                    return JsonReply(parsed(text, check), spent)
                except ValueError as error:
                    complaint, fault = str(error), LlmFault.INVALID
            plea = ChatMessage(role="user", content=repair.format(complaint=complaint))
            talk = [*messages, ChatMessage(role="assistant", content=text[:400]), plea]
        raise LlmError(fault, f"after one repair: {complaint}", spent)

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
        """:meth:`complete_json` in a thread."""
        return await asyncio.to_thread(
            self.complete_json,
            messages,
            schema,
            deadline=deadline,
            check=check,
            max_tokens=max_tokens,
            repair=repair,
        )

    def close(self) -> None:
        """Stop the engine; the next question loads it again."""
        with self._lock:
            if self._llm is not None:
                self._llm.close_engine()
                self._llm = None

    def _write_before(
        self, deadline: Deadline, messages: list[ChatMessage], schema: Schema, limit: int
    ) -> tuple[str, str | None, TokenUse]:
        answer: Future[tuple[str, str | None, TokenUse]] = Future()

        def work() -> None:
            try:
                with self._lock:
                    if time.monotonic() < deadline.at:
                        answer.set_result(self._write(messages, schema, limit))
                    else:
                        answer.set_exception(TimeoutError())
            except BaseException as error:  # noqa: BLE001  # handed to the one who waits
                answer.set_exception(error)

        threading.Thread(target=work, name="wardround-vllm", daemon=True).start()
        try:
            return answer.result(timeout=deadline.left_s)
        except TimeoutError as error:
            raise LlmError(LlmFault.TIMEOUT, f"no answer within {deadline.allowed_s:g} s") from error
        except ValueError as error:  # vLLM: the prompt is longer than the context
            raise LlmError(LlmFault.HTTP, "vLLM refused the prompt") from error

    def _write(
        self, messages: list[ChatMessage], schema: Schema, limit: int
    ) -> tuple[str, str | None, TokenUse]:
        from vllm.sampling_params import StructuredOutputsParams  # noqa: PLC0415  # not installed everywhere

        llm = self._loaded()
        shape = StructuredOutputsParams(json=dict(schema), disable_any_whitespace=True)
        return llm.write(self._as_prompt(messages), max_tokens=limit, structured_outputs=shape)

    def _loaded(self) -> LocalVllm:
        if self._llm is None:
            stay_offline()
            try:
                from transformers import AutoTokenizer  # noqa: PLC0415  # comes with vLLM

                tokenizer = AutoTokenizer.from_pretrained(str(self.path))

                def chat(messages: Sequence[ChatMessage]) -> str:
                    talk = [{"role": one.role.value, "content": one.content or ""} for one in messages]
                    return str(
                        tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
                    )

                self._as_prompt = chat
                self._llm = LocalVllm(
                    model=str(self.path),
                    temperature=self._temperature,
                    max_new_tokens=self.max_tokens,
                    messages_to_prompt=chat,
                    api_url="",
                    is_chat_model=True,
                    top_k=0,
                    vllm_kwargs={"max_model_len": self.context_window} | self._engine,
                )
            except (ImportError, OSError, ValueError, RuntimeError) as error:
                raise ModelError(f"{self.path}: vLLM cannot load it ({str(error)[:200]})") from error
        return self._llm
