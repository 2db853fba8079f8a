"""The records' vote: what the nearest cases had, weighted by how near they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from .evidence import Evidence


@dataclass(frozen=True)
class Candidate:
    """A diagnosis with its share of the vote.

    Attributes:
        name: as the best record with the leading code writes it.
        code: that most of the label's vote is for.
        title: of that code.
        share: of the vote, 0..1.
        evidence: the records with it, those with the leading code first, best first among each.
    """

    name: str
    code: str | None
    title: str | None
    share: float
    evidence: tuple[Evidence, ...]


def tally(
    evidence: Sequence[Evidence],
    *,
    power: float = 4.0,
    seed: int = 0,
    query_id: str = "",
    language: str | None = None,
) -> list[Candidate]:
    """Rank the labels of the records, best first.

    Where the retriever ranked labels itself (``label_share``, mixed with what all records taught), its shares
    stand; they need not sum to 1, since labels without a record are not listed. Otherwise each record's score
    to the ``power`` counts for its label, and shares are of the whole.

    Args:
        evidence: retrieved records, best first.
        power: 0 counts heads, more lets near records decide.
        seed: breaks ties, with the query's and the record's id.
        query_id: names the query in ties.
        language: a diagnosis is named as a record of this language writes it, where there is one.

    Source: ours (a similarity-weighted vote beats the single best record).
    """
    groups: dict[str, list[Evidence]] = {}
    for one in evidence:
        groups.setdefault(one.label, []).append(one)
    weights = {label: sum(one.score**power for one in members) for label, members in groups.items()}
    mixed = is_mixed(evidence)
    whole = sum(weights.values())
    ranked = []
    for label, members in groups.items():
        if mixed:
            share = max(one.label_share or 0.0 for one in members)
        else:
            share = weights[label] / whole if whole > 0 else len(members) / len(evidence)
        ranked.append(_candidate(members, share, power, language))
    ranked.sort(key=lambda c: (-c.share, _tie(seed, query_id, c.evidence[0].record_id)))
    return ranked


def _candidate(members: Sequence[Evidence], share: float, power: float, language: str | None) -> Candidate:
    """A label under the name that most of its vote is for: one category may hold several diagnoses."""
    votes: dict[str, float] = {}
    for one in members:
        kind = one.code or one.diagnosis.casefold()
        votes[kind] = votes.get(kind, 0.0) + one.score**power
    leading = max(votes, key=votes.__getitem__)
    named = [one for one in members if (one.code or one.diagnosis.casefold()) == leading]
    coded = named[0] if named[0].code else next((one for one in members if one.code), named[0])
    name = next((one.diagnosis for one in named if one.language == language), named[0].diagnosis)
    others = [one for one in members if one not in named]
    return Candidate(name, coded.code, coded.title, share, (*named, *others))


def is_mixed(evidence: Sequence[Evidence]) -> bool:
    """Whether the retriever ranked labels itself."""
    return any(one.label_share is not None for one in evidence)


def _tie(seed: int, query_id: str, record_id: str) -> str:
    return hashlib.sha256(f"{seed}\x1f{query_id}\x1f{record_id}".encode()).hexdigest()
