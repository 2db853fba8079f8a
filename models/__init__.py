"""The embedder and the language model, chosen by settings."""

from .base import TextEmbedder
from .bge import BgeM3Embedder
from .cache import EmbeddingCache
from .choose import embedder_from_settings, llm_from_settings
from .deadline import Deadline
from .failure import LlmError, LlmFault
from .foreign import LlamaEmbedder
from .ports import JsonLlm, JsonReply
from .use import UseEmbedder

__all__ = [
    "BgeM3Embedder",
    "Deadline",
    "EmbeddingCache",
    "JsonLlm",
    "JsonReply",
    "LlamaEmbedder",
    "LlmError",
    "LlmFault",
    "TextEmbedder",
    "UseEmbedder",
    "embedder_from_settings",
    "llm_from_settings",
]
