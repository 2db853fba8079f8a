"""What comes in: outpatient records, their readers, de-identification and demo data.

Names are imported on first use, so that one format's library is not loaded for another's file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .readers import format_of, read_records
    from .rejects import Reject, RejectLog
    from .schema import VIEWS, Diagnosis, OutpatientRecord, View

_HOME_OF = {
    "VIEWS": "schema",
    "Diagnosis": "schema",
    "OutpatientRecord": "schema",
    "Reject": "rejects",
    "RejectLog": "rejects",
    "View": "schema",
    "format_of": "readers",
    "read_records": "readers",
}

__all__ = [
    "VIEWS",
    "Diagnosis",
    "OutpatientRecord",
    "Reject",
    "RejectLog",
    "View",
    "format_of",
    "read_records",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
