"""The view splitter as a LlamaIndex node parser, for ingestion pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, NodeRelationship, TextNode
from llama_index.core.utils import get_tqdm_iterable

from ..language.views import ViewSplit, split_views
from .schema import VIEWS


class ClinicalViewParser(NodeParser):
    """Turns each document into one ``TextNode`` per view it has; the diagnosis is in none of them.

    A node's id is ``<document id>:<view>``. Metadata: the document's, plus ``view``, ``record_id`` (the
    document's ``record_id`` or id) and ``headed``; ``diagnosis`` and the other label keys named in
    ``label_keys`` are kept from embedder and language model. ``start_char_idx`` and ``end_char_idx`` are set
    where the view is one stretch of the text. Source: MAP-RAG's views.

    Attributes:
        language: of all documents; else each document's ``language`` metadata; else detected.
        label_keys: metadata that would tell the diagnosis.
    """

    language: str | None = None
    label_keys: tuple[str, ...] = ("diagnosis", "diagnoses", "code", "label")

    @classmethod
    def class_name(cls) -> str:
        """Name in a serialised pipeline."""
        return "ClinicalViewParser"

    @classmethod
    def from_defaults(cls, language: str | None = None) -> ClinicalViewParser:
        """A parser for documents of one language, or of any where None."""
        return cls(language=language)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """The parser that ``to_dict`` described; its ids need no ``id_func``, which has no form in a dict."""
        return super().from_dict({key: value for key, value in data.items() if key != "id_func"}, **kwargs)

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: Any
    ) -> list[BaseNode]:
        return [
            node
            for document in get_tqdm_iterable(nodes, show_progress, "Splitting records into views")
            for node in self._views(document)
        ]

    def _views(self, document: BaseNode) -> list[TextNode]:
        text = document.get_content()
        split = split_views(text, self.language or document.metadata.get("language"))
        made = []
        known = {"record_id": document.node_id} | (document.metadata if self.include_metadata else {})
        for view in VIEWS:
            if view.value not in split.views:
                continue
            start, end = _stretch(split, view.value)
            node = TextNode(
                id_=f"{document.node_id}:{view.value}",
                text=split.views[view.value],
                metadata=known | {"view": view.value, "headed": split.headed},
                excluded_embed_metadata_keys=self._kept_back(document.excluded_embed_metadata_keys),
                excluded_llm_metadata_keys=self._kept_back(document.excluded_llm_metadata_keys),
                relationships={
                    NodeRelationship.SOURCE: document.source_node or document.as_related_node_info()
                },
                start_char_idx=start,
                end_char_idx=end,
            )
            made.append(node)
        return made

    def _kept_back(self, keys: list[str]) -> list[str]:
        return list(dict.fromkeys([*keys, *self.label_keys, "record_id", "headed"]))

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """Links the views of a record in order; the inherited search for their text would misplace them."""
        del parent_doc_map
        for before, after in pairwise(nodes):
            if self.include_prev_next_rel and before.ref_doc_id == after.ref_doc_id:
                before.relationships[NodeRelationship.NEXT] = after.as_related_node_info()
                after.relationships[NodeRelationship.PREVIOUS] = before.as_related_node_info()
        return nodes


def _stretch(split: ViewSplit, view: str) -> tuple[int | None, int | None]:
    spans = [span for span in split.spans if span.view == view]
    return (spans[0].start, spans[0].end) if len(spans) == 1 else (None, None)
