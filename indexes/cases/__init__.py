"""The multi-view case index; names are imported on first use, because FAISS and LlamaIndex take seconds."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dense import AnnOptions
    from .encoded import EncodedQuery
    from .index import CaseIndex
    from .ingest import Report
    from .payload import CasePayload
    from .reader import CaseReader
    from .scores import Channel, ChannelScores

_HOME_OF = {
    "AnnOptions": "dense",
    "CaseIndex": "index",
    "CaseReader": "reader",
    "CasePayload": "payload",
    "Channel": "scores",
    "ChannelScores": "scores",
    "EncodedQuery": "encoded",
    "Report": "ingest",
}

__all__ = [
    "AnnOptions",
    "CaseIndex",
    "CasePayload",
    "CaseReader",
    "Channel",
    "ChannelScores",
    "EncodedQuery",
    "Report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
