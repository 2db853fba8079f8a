"""Codes the diagnoses of retrieved records; the logic is in ``knowledge/icd``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ..knowledge.icd import IcdCascade, IcdMatch, Neighbour, load_code_system
from ..settings import Icd10Settings

if TYPE_CHECKING:
    from llama_index.core.tools import FunctionTool

_KEY = "icd10"


class Icd10Mapper(BaseNodePostprocessor):
    """Gives every node whose metadata has a ``diagnosis`` without ``code`` an ICD-10 code.

    Sets ``metadata["icd10"] = {"code", "title", "stage", "score"}``, with the record's own code (stage
    ``"record"``) where it has one, and ``code`` None where nothing fits. The key is kept out of what an
    embedder or language model sees. Source: MAP-RAG; scores and guards are ours.

    Args:
        cascade: the coder; ICD-10-CM where None.

    Example:
        >>> Icd10Mapper().map("heart attack").code
        'I21.9'
    """

    _cascade: IcdCascade = PrivateAttr()

    def __init__(self, cascade: IcdCascade | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._cascade = cascade or IcdCascade(load_code_system("icd10cm"))

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex serialises it."""
        return "Icd10Mapper"

    @classmethod
    def from_defaults(cls, settings: Icd10Settings | None = None) -> Self:
        """A mapper by settings.

        Raises:
            SettingsError: unknown code system, or an alias file that is not there.
            InputError: a code list or alias file that cannot be read.
        """
        settings = settings or Icd10Settings()
        cascade = IcdCascade(
            load_code_system(settings.system),
            aliases=settings.aliases,
            min_score=settings.min_score,
            min_margin=settings.min_margin,
            prefer_leaf=settings.prefer_leaf,
        )
        return cls(cascade)

    def map(self, text: str, neighbours: Sequence[Neighbour] = (), top_k: int = 5) -> IcdMatch:
        """Code one diagnosis; see :meth:`IcdCascade.map`."""
        return self._cascade.map(text, neighbours, top_k)

    def map_many(self, texts: Sequence[str], top_k: int = 5) -> list[IcdMatch]:
        """Code many diagnoses; see :meth:`IcdCascade.map_many`."""
        return self._cascade.map_many(texts, top_k=top_k)

    def as_tool(self) -> FunctionTool:
        """The coder as a tool for a LlamaIndex agent."""
        from llama_index.core.tools import FunctionTool  # noqa: PLC0415  # slow to import

        def code_diagnosis(diagnosis: str) -> dict[str, object]:
            """Find the ICD-10 code of a diagnosis; code is null where none fits."""
            match = self.map(diagnosis)
            return {
                "code": match.code,
                "title": match.title,
                "stage": match.stage.value,
                "score": match.score,
            }

        return FunctionTool.from_defaults(code_diagnosis, name="icd10_code")

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """Codes each distinct diagnosis once; order and scores stay as they are."""
        del query_bundle
        missing = [_name(node) for node in nodes if _name(node) and not node.node.metadata.get("code")]
        names = list(dict.fromkeys(missing))
        coded = dict(zip(names, self._cascade.map_many(names, top_k=1), strict=True))
        lent = self._neighbours(nodes, coded)
        for node in nodes:
            name = _name(node)
            if not name:
                continue
            metadata = node.node.metadata
            if own := metadata.get("code"):
                title = self._cascade.system.title_of(str(own))
                metadata[_KEY] = {"code": str(own), "title": title, "stage": "record", "score": 1.0}
            else:
                match = coded[name]
                if match.code is None:
                    match = self._cascade.map(name, lent, top_k=1)
                metadata[_KEY] = {
                    "code": match.code,
                    "title": match.title,
                    "stage": match.stage.value,
                    "score": match.score,
                }
            for keys in (node.node.excluded_embed_metadata_keys, node.node.excluded_llm_metadata_keys):
                if _KEY not in keys:
                    keys.append(_KEY)
        return nodes

    @staticmethod
    def _neighbours(nodes: Sequence[NodeWithScore], coded: dict[str, IcdMatch]) -> list[Neighbour]:
        """Diagnoses of the records that carry a code or got one, most similar record first."""
        out = []
        for node in sorted(nodes, key=lambda n: -(n.score or 0.0)):
            name = _name(node)
            code = node.node.metadata.get("code") or (coded[name].code if name in coded else None)
            if name and code:
                out.append(Neighbour(name, str(code), float(node.score or 0.0)))
        return out


def _name(node: NodeWithScore) -> str:
    value = node.node.metadata.get("diagnosis")
    return value.strip() if isinstance(value, str) else ""
