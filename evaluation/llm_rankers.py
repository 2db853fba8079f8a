"""What each condition's ranker shows a language model: records, lane and vote, for one query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..indexes.cases import CaseIndex, Channel
from ..query import ClinicalQuery
from ..records.schema import VIEWS, OutpatientRecord, View
from ..retrievers.case_ranker import CaseRanker, CaseRanking, Prior, RankingPlan
from ..settings import ConfidenceSettings
from .llm_asking import LlmCase, Neighbour
from .metrics import tie_key

_MOST_RECORDS = 10


@dataclass(frozen=True)
class Shown:
    """What a language model is shown about one query.

    Attributes:
        neighbours: records, best first.
        lane: ``vote``, ``standard`` or ``deep`` by the ranker's confidence; None for a flat ranker.
        vote: diagnosis and share, best first.
    """

    neighbours: tuple[Neighbour, ...] = ()
    lane: str | None = None
    vote: tuple[tuple[str, float], ...] = ()


class LlmRankers:
    """The rankers behind the conditions, over one index.

    ``dense`` and ``flat_hybrid`` compare the whole text by one or both channels; ``map_rag`` is the paper's
    method with raw confidence; ``ours`` is what ships, with calibrated confidence where it was learned.

    Args:
        index: of the records that are no queries.
        ranker: over the same index, with what was learned.
        confidence: where the routes part.
        seed: orders equal scores.
    """

    def __init__(
        self,
        index: CaseIndex,
        ranker: CaseRanker,
        *,
        confidence: ConfidenceSettings | None = None,
        seed: int = 0,
    ) -> None:
        self._index = index
        self._ranker = ranker
        self._confidence = confidence or ConfidenceSettings()
        self._seed = seed
        plan = RankingPlan(prior=Prior.FREQUENCY, learned=False)
        models = ranker.models.as_paper()
        self._paper = CaseRanker(index, models=models, candidates=ranker.candidates, plan=plan, seed=seed)

    def shown(self, name: str | None, record: OutpatientRecord, case: LlmCase) -> Shown:
        """What a ranker shows for a query.

        Args:
            name: of the ranker; None shows nothing.
            record: the query, left out of its own evidence.
            case: its text.

        Raises:
            KeyError: no such ranker.
        """
        if name is None:
            return Shown()
        kinds: dict[str, Callable[[OutpatientRecord, LlmCase], Shown]] = {
            "dense": lambda r, c: self._flat(r, c, (Channel.DENSE,)),
            "flat_hybrid": lambda r, c: self._flat(r, c, (Channel.DENSE, Channel.SPARSE)),
            "map_rag": lambda r, c: self._routed(self._paper, r, c, raw=True),
            "ours": lambda r, c: self._routed(self._ranker, r, c, raw=False),
        }
        return kinds[name](record, case)

    def _flat(self, record: OutpatientRecord, case: LlmCase, channels: tuple[Channel, ...]) -> Shown:
        encoded = self._index.encode_query({View.GLOBAL: case.text}, case.language)
        found = self._index.search(encoded, exclude=frozenset({record.id}))
        place = VIEWS.index(View.GLOBAL)
        scores = found.scores[:, place, [int(one) for one in channels]].mean(axis=1)
        ids = [self._index.ids[int(row)] for row in found.rows]
        order = sorted(
            range(len(ids)), key=lambda i: (-float(scores[i]), tie_key(self._seed, record.id, ids[i]))
        )
        return Shown(self._neighbours(found.rows[order[:_MOST_RECORDS]]))

    def _routed(self, ranker: CaseRanker, record: OutpatientRecord, case: LlmCase, *, raw: bool) -> Shown:
        views = {str(view): text for view, text in record.views.items()} if record.views else None
        ranking = ranker.rank(
            ClinicalQuery(
                case.text,
                department=record.department,
                age=record.age,
                sex=record.sex,
                views=views,
                language=record.language,
                record_ids=frozenset({record.id}),
            )
        )
        vote = tuple((one.name, one.share) for one in ranking.diagnoses)
        return Shown(self._neighbours(ranking.rows[:_MOST_RECORDS]), self._lane(ranking, raw=raw), vote)

    def _lane(self, ranking: CaseRanking, *, raw: bool) -> str:
        value = ranking.raw.raw if raw else ranking.confidence.value
        if value > self._confidence.vote_above:
            return "vote"
        return "deep" if value <= self._confidence.deep_below else "standard"

    def _neighbours(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[Neighbour, ...]:
        payloads = self._index.payloads(int(row) for row in rows)
        return tuple(Neighbour(one.id, one.text, one.diagnoses[0].name) for one in payloads if one.diagnoses)
