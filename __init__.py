"""wardround: clinical retrieval over similar cases, patient charts and guidelines.

Public names are imported on first use: LlamaIndex alone takes seconds to import,
and the command line's ``--help`` must not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wardround.app import Wardround
    from wardround.indexes.cases import CaseIndex
    from wardround.postprocessors.clinical_prior import ClinicalPriorReranker
    from wardround.postprocessors.icd10 import Icd10Mapper
    from wardround.query import ClinicalAnswer, ClinicalQuery
    from wardround.records.schema import OutpatientRecord
    from wardround.retrievers.multi_view import MultiViewHybridRetriever
    from wardround.routers.selector import ClinicalSelector
    from wardround.settings import Settings

__version__ = "0.1.0"

_HOME_OF = {
    "CaseIndex": "wardround.indexes.cases",
    "ClinicalAnswer": "wardround.query",
    "ClinicalPriorReranker": "wardround.postprocessors.clinical_prior",
    "ClinicalQuery": "wardround.query",
    "ClinicalSelector": "wardround.routers.selector",
    "Icd10Mapper": "wardround.postprocessors.icd10",
    "MultiViewHybridRetriever": "wardround.retrievers.multi_view",
    "OutpatientRecord": "wardround.records.schema",
    "Settings": "wardround.settings",
    "Wardround": "wardround.app",
}

__all__ = [
    "CaseIndex",
    "ClinicalAnswer",
    "ClinicalPriorReranker",
    "ClinicalQuery",
    "ClinicalSelector",
    "Icd10Mapper",
    "MultiViewHybridRetriever",
    "OutpatientRecord",
    "Settings",
    "Wardround",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    msg = f"module 'wardround' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
