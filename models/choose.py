"""Models by settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import EmbedderSettings, LlmSettings
from .base import TextEmbedder

if TYPE_CHECKING:
    from .ports import JsonLlm


def embedder_from_settings(settings: EmbedderSettings) -> TextEmbedder:
    """The embedder that the settings name; weights are loaded when it is first used.

    Raises:
        ModelError: its folder is not whole, or what it needs is not installed.
    """
    if settings.kind == "bge-m3":
        from .bge import BgeM3Embedder, require_bge_extra  # noqa: PLC0415  # optional extra

        require_bge_extra()
        if settings.path is None:  # pragma: no cover  # the settings refuse it
            raise AssertionError
        return BgeM3Embedder(settings.path, batch_size=settings.batch_size, threads=settings.threads)
    from .use import UseEmbedder  # noqa: PLC0415  # numpy and weights only when wanted

    return UseEmbedder(threads=settings.threads)


def llm_from_settings(settings: LlmSettings) -> JsonLlm | None:
    """The language model that the settings name; None where they name none (the records answer).

    Raises:
        ModelError: a local folder is not whole, or vLLM is not installed.
    """
    if settings.path is not None:
        from .in_process import InProcessLlm  # noqa: PLC0415  # needs vLLM

        return InProcessLlm.from_settings(settings)
    if settings.base_url is None:
        return None
    from .llm import ServedLlm  # noqa: PLC0415  # the OpenAI client takes a second to import

    return ServedLlm(
        settings.base_url,
        model=settings.model,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        context_window=settings.context_window,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        deadline_s=settings.deadline_s,
    )
