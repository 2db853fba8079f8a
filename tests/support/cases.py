"""A handful of made-up neighbours, as the retriever hands them over."""

from __future__ import annotations

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from wardround.query import ClinicalQuery, Confidence, Task

GLAUCOMA = ("Acute angle-closure glaucoma", "H40.21")
UVEITIS = ("Anterior uveitis", "H20.0")
KERATITIS = ("Keratitis", "H16.9")


def node(record_id, text, diagnosis, score, code=None, **more):
    known = {
        "record_id": record_id,
        "diagnosis": diagnosis,
        "code": code,
        "label": (code or diagnosis)[:3].casefold() if code else diagnosis.casefold(),
        "department": "ophthalmology",
        "date": "2023-04-05",
        **more,
    }
    return NodeWithScore(node=TextNode(id_=record_id, text=text, metadata=known), score=score)


def eye_nodes():
    rows = [
        (
            "g1",
            "Sudden pain in the right eye. Mid-dilated pupil. IOP 48 mmHg. Given mannitol.",
            GLAUCOMA,
            0.82,
        ),
        ("g2", "Headache with haloes around lights. Corneal oedema, IOP 51 mmHg.", GLAUCOMA, 0.74),
        ("u1", "Photophobia for two days. Cells and flare. Keratic precipitates.", UVEITIS, 0.61),
        ("k1", "Contact lens wearer. Corneal infiltrate with fluorescein uptake.", KERATITIS, 0.4),
    ]
    return [node(record_id, text, name, score, code) for record_id, text, (name, code), score in rows]


CASE = "Painful red eye since this morning, haloes around lights, vomiting. IOP 44 mmHg, hazy cornea."


def eye_query(nodes=None, **known):
    query = ClinicalQuery.of(known.pop("text", CASE), language=known.pop("language", "en"), **known)
    query.evidence[Task.DIAGNOSE] = eye_nodes() if nodes is None else nodes
    query.confidence = Confidence(0.6, 0.6, 0.8, 0.7, 0.2)
    return query


class FixedRetriever(BaseRetriever):
    """Finds the same records for every question and remembers what it was asked."""

    def __init__(self, nodes=None):
        super().__init__()
        self.nodes = eye_nodes() if nodes is None else nodes
        self.asked = []

    def _retrieve(self, query_bundle):
        self.asked.append(query_bundle)
        return self.nodes
