"""What comes in: outpatient records, their readers, de-identification and demo data.

Names are imported on first use, so that one format's library is not loaded for another's file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .deidentify import Scrubber, ScrubReport, require_deidentified, scrubber_for
    from .demo import demo_records, generate_records
    from .readers import format_of, read_records
    from .rejects import Reject, RejectLog
    from .schema import VIEWS, Diagnosis, OutpatientRecord, View
    from .view_parser import ClinicalViewParser
    from .views import views_of

_HOME_OF = {
    "VIEWS": "schema",
    "ClinicalViewParser": "view_parser",
    "Diagnosis": "schema",
    "OutpatientRecord": "schema",
    "Reject": "rejects",
    "RejectLog": "rejects",
    "ScrubReport": "deidentify",
    "Scrubber": "deidentify",
    "View": "schema",
    "demo_records": "demo",
    "format_of": "readers",
    "generate_records": "demo",
    "read_records": "readers",
    "require_deidentified": "deidentify",
    "scrubber_for": "deidentify",
    "views_of": "views",
}

__all__ = [
    "VIEWS",
    "ClinicalViewParser",
    "Diagnosis",
    "OutpatientRecord",
    "Reject",
    "RejectLog",
    "ScrubReport",
    "Scrubber",
    "View",
    "demo_records",
    "format_of",
    "generate_records",
    "read_records",
    "require_deidentified",
    "scrubber_for",
    "views_of",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
