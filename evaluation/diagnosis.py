"""``evaluate diagnosis``: how well conditions find a case's diagnosis in other cases."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..indexes.cases import CaseIndex
from ..knowledge.calibration import ConfidenceCalibration
from ..knowledge.labels import LabelMode, LabelSpace
from ..knowledge.learned import LabelScorer
from ..knowledge.lessons import MOST_ASKED, Lessons
from ..knowledge.ranking import FEATURES
from ..knowledge.weights import ViewWeights
from ..models.base import TextEmbedder
from ..models.cache import EmbeddingCache
from ..models.use import UseEmbedder
from ..records.schema import OutpatientRecord
from ..settings import Settings
from .asked_cases import AskedCase, embed_cases, prepare, read_labelled
from .baselines import TEXT_ONLY
from .conditions import CONDITIONS, SAME_AS_OURS
from .diagnosis_figures import Scored, report_of
from .folds import folds_of, splits
from .metrics import MISSED
from .report import ready_folder, write_report
from .rounds import Answerer, Fold, Prediction, Question

Floats = npt.NDArray[np.float32]

_CROSS_FITS = 5


def evaluate_diagnosis(
    records: str | Path | Sequence[OutpatientRecord],
    queries: str | Path | Sequence[OutpatientRecord] | None = None,
    *,
    cv: str | int | None = None,
    label: str = "auto",
    conditions: Iterable[str] | None = None,
    drop_twins: bool = False,
    seed: int = 0,
    out: str | Path | None = None,
    settings: Settings | None = None,
    embedder: TextEmbedder | None = None,
    tick: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Compare conditions on labelled cases.

    Everything that is fitted (view weights, the learned scorer, the mix, calibration) is fitted on the
    records of the round alone; indexes are built in a temporary folder, and each text is embedded once.

    Args:
        records: labelled records to search: a file that :func:`read_records` reads, or the records.
        queries: labelled cases to ask; or give ``cv``.
        cv: number of folds over ``records``, as many as there are records at most, or ``"loo"``.
        label: ``name``, ``category``, ``code`` or ``auto``.
        conditions: names; all that need no language model where None.
        drop_twins: leave near-identical cases out.
        seed: of folds, ties and everything that is drawn.
        out: folder for predictions, tables and plots.
        settings: of records, weights, routes and the language model.
        embedder: the settings' one where None.
        tick: called with the number of queries answered since its last call.

    Returns:
        The JSON object of docs/evaluation.md.

    Raises:
        InputError: no such condition, no records, neither or both of ``queries`` and ``cv``, or no writing
            to ``out``.
    """
    settings = settings or Settings()
    folds = folds_of(cv)
    if (queries is None) == (folds is None):
        raise InputError("give either queries or cv")
    names, llm_names = _chosen(conditions, settings)
    if out is not None:
        ready_folder(Path(out))
    embedder = embedder or _embedder(settings)
    with tempfile.TemporaryDirectory(prefix="wardround-evaluation-") as scratch:
        cache = EmbeddingCache((settings.cache or Path(scratch)) / "embeddings")
        logs = Path(out) if out is not None else Path(scratch)
        known, bad = read_labelled(records, settings, logs / "records.rejects.jsonl")
        asking, worse = known, 0
        if queries is not None:
            asking, worse = read_labelled(queries, settings, logs / "queries.rejects.jsonl")
        space, cases_a, cases_b, twins = prepare(
            known, None if queries is None else asking, label, drop_twins
        )
        embed_cases([*cases_a, *([] if queries is None else cases_b)], embedder, cache)
        run = _Run(
            cases_a, cases_b, space, names, llm_names, seed, settings, embedder, cache, Path(scratch), out
        )
        scored = run.all_rounds(folds, tick)
    result = report_of(
        scored, labels=len({c.label for c in cases_a}), twins=twins, seed=seed, settings=settings
    )
    result["rejected"] = bad + worse
    if folds:
        result["folds"] = min(folds, len(cases_a))
    if out is not None:
        write_report(result, scored, Path(out))
    return result


def _chosen(conditions: Iterable[str] | None, settings: Settings) -> tuple[list[str], list[str]]:
    from .llm_asking import LLM_CONDITIONS  # noqa: PLC0415  # only names; no model is loaded

    if conditions is None:
        return list(CONDITIONS), list(LLM_CONDITIONS) if settings.llm.base_url else []
    wanted = list(dict.fromkeys(conditions))
    for name in wanted:
        if name not in CONDITIONS and name not in LLM_CONDITIONS:
            known = ", ".join([*CONDITIONS, *LLM_CONDITIONS])
            raise InputError(f"unknown condition {name!r}; known are {known}")
        if name in LLM_CONDITIONS and not settings.llm.base_url:
            raise InputError(f"condition {name!r} asks a language model; give --llm URL")
    return [n for n in CONDITIONS if n in wanted], [n for n in LLM_CONDITIONS if n in wanted]


def _embedder(settings: Settings) -> TextEmbedder:
    if settings.embedder.kind == "use":
        return UseEmbedder()
    from ..models import embedder_from_settings  # noqa: PLC0415  # may load torch

    return embedder_from_settings(settings.embedder)


@dataclass
class _Run:
    """One evaluation's rounds."""

    records: list[AskedCase]
    queries: list[AskedCase]
    space: LabelSpace
    names: list[str]
    llm_names: list[str]
    seed: int
    settings: Settings
    embedder: TextEmbedder
    cache: EmbeddingCache
    scratch: Path
    out: str | Path | None

    def all_rounds(self, folds: int | None, tick: Callable[[int], None] | None) -> Scored:
        n = len(self.queries)
        scored = Scored.empty(
            [case.record.id for case in self.queries],
            [case.record.department for case in self.queries],
            np.array([case.label for case in self.queries], np.int64),
            self.names,
        )
        by_id = {case.record.id: case for case in self.records}
        rounds = splits([c.record for c in self.records], [c.record for c in self.queries], folds, self.seed)
        for number, split in enumerate(rounds):
            known = [by_id[record.id] for record in split.records]
            self._round(
                number=number,
                known=known,
                asking=split.queries,
                left_out=split.left_out,
                scored=scored,
                tick=tick,
            )
        if folds == 0:
            self._cross_fit(scored)
        scored.finish(n)
        return scored

    def _round(
        self,
        *,
        number: int,
        known: list[AskedCase],
        asking: list[int],
        left_out: bool,
        scored: Scored,
        tick: Callable[[int], None] | None,
    ) -> None:
        index = CaseIndex.build(
            (case.record for case in known),
            self.scratch / f"round-{number}",
            embedder=self.embedder,
            cache=self.cache,
        )
        own = {case.record.id: case.label for case in known}
        left_out = left_out or any(self.queries[place].record.id in own for place in asking)
        fold = self._fold(index, most_asked=len(known) if left_out else MOST_ASKED)
        counts = np.bincount([case.label for case in known], minlength=len(self.space))
        answerers = {name: CONDITIONS[name](fold) for name in self.names if not self._copied(name)}
        asked_at = {fold.lessons.index.ids[one.row]: i for i, one in enumerate(fold.lessons.asked)}
        for place in asking:
            case = self.queries[place]
            others = counts[case.label] - int(own.get(case.record.id) == case.label)
            scored.answerable[place] = others > 0
            question, spent = self._question(fold, case, asked_at if case.record.id in own else None)
            for name, answer in answerers.items():
                self._answer(
                    name=name,
                    answer=answer,
                    question=question,
                    spent=spent,
                    place=place,
                    case=case,
                    scored=scored,
                )
            for name in self.names:
                if self._copied(name):
                    scored.copy(name, "ours", place)
            if tick is not None:
                tick(1)
        if self.llm_names:
            self._ask_llm(fold, asking, scored)

    def _copied(self, name: str) -> bool:
        coded = any(d.code for case in self.records for d in case.record.diagnoses[:1])
        same = name in SAME_AS_OURS or (name == "no_icd" and not coded)
        return same and "ours" in self.names

    def _fold(self, index: CaseIndex, most_asked: int) -> Fold:
        table = ViewWeights.load(self.settings.cases.weights)
        options: dict[str, Any] = {
            "candidates": self.settings.cases.candidates,
            "seed": self.seed,
            "most_asked": most_asked,
        }
        lessons = Lessons(index, mode=self.space.mode, **options)
        baseline: tuple[LabelScorer | None, Floats] = (
            None,
            np.zeros((0, len(lessons.table.space)), np.float32),
        )
        if lessons.asked:
            rows = np.array([one.row for one in lessons.asked])
            baseline = LabelScorer.fit(lessons.table, options=TEXT_ONLY, sample=rows, seed=self.seed)
        return Fold(
            index, lessons, baseline, table, self.seed, lambda: Lessons(index, mode=LabelMode.NAME, **options)
        )

    def _question(
        self, fold: Fold, case: AskedCase, asked_at: Mapping[str, int] | None
    ) -> tuple[Question, dict[str, float]]:
        clock = time.perf_counter
        started = clock()
        encoded = fold.index.encode_query(case.views, case.record.language, vectors=case.vectors)
        encoded_at = clock()
        count = len(fold.lessons.table.space)
        learned = supervised = np.zeros(count, np.float32)
        own = -1
        scorer = fold.lessons.scorer
        if asked_at is not None:
            place = asked_at.get(case.record.id)
            if place is not None:
                learned, supervised = fold.lessons.asked[place].scores, fold.supervised[1][place]
                own = int(fold.lessons.table.labels[fold.lessons.asked[place].row])
                if fold.lessons.counts[own] == 1:
                    learned, supervised = _without(learned, own), _without(supervised, own)
        elif scorer is not None:
            learned = scorer.score(scorer.features(encoded, case.text, case.patient))
        scored_at = clock()
        if asked_at is None and fold.supervised[0] is not None:
            base = fold.supervised[0]
            supervised = base.score(base.features(encoded, case.text, case.patient))
        based_at = clock()
        proposals = np.argsort(-learned, kind="stable")[:10]
        extra = np.concatenate([*(fold_rows(fold, int(i)) for i in proposals), np.zeros(0, np.int64)])
        exclude = frozenset([case.record.id])
        found = fold.index.search(
            encoded, candidates=self.settings.cases.candidates, exclude=exclude, extra_rows=extra
        )
        ended = clock()
        question = Question(
            case.record.id, case.text, case.patient, case.headed, encoded, found, learned, supervised, own
        )
        encoding, search = encoded_at - started, ended - based_at
        spent = {
            "search": encoding + search,
            "supervised": encoding + based_at - scored_at,
            "ours": encoding + search + scored_at - encoded_at,
        }
        return question, spent

    def _answer(
        self,
        *,
        name: str,
        answer: Answerer,
        question: Question,
        spent: Mapping[str, float],
        place: int,
        case: AskedCase,
        scored: Scored,
    ) -> None:
        started = time.perf_counter()
        prediction = answer(question)
        took = time.perf_counter() - started
        before = "supervised" if name == "supervised" else "search"
        if name == "ours" or name.startswith("no_"):
            before = "ours"
        scored.put(name, place, prediction, self._rank(prediction, case.label), (took + spent[before]) * 1000)

    def _rank(self, prediction: Prediction, label: int) -> int:
        seen: list[int] = []
        for diagnosis, code in prediction.ranked:
            number = self.space.number(diagnosis, code)
            if number == label:
                return len(seen)
            if number not in seen:
                seen.append(number)
        return MISSED

    def _cross_fit(self, scored: Scored) -> None:
        """In leave-one-out the records that calibrate are the queries: refit confidence out of fold."""
        part = np.arange(len(scored.labels)) % _CROSS_FITS
        part = np.random.default_rng(self.seed).permutation(part)
        for name in self.names:
            values, right = np.stack(scored.signs[name]), scored.ranks[name] == 0
            for fold in range(_CROSS_FITS):
                here = part == fold
                if here.any() and not here.all():
                    fitted = ConfidenceCalibration.fit(FEATURES, values[~here], right[~here])
                    scored.confidence[name][here] = fitted.apply(values[here])

    def _ask_llm(self, fold: Fold, asking: list[int], scored: Scored) -> None:
        from ..models import llm_from_settings  # noqa: PLC0415  # only where a model is asked
        from ..retrievers.case_ranker import CaseRanker  # noqa: PLC0415
        from .llm_rankers import LlmRankers  # noqa: PLC0415
        from .llm_report import run_llm_conditions  # noqa: PLC0415

        llm = llm_from_settings(self.settings.llm)
        if llm is None:
            return
        ranker = CaseRanker(fold.index, models=fold.ours(), seed=self.seed)
        rankers = LlmRankers(fold.index, ranker, confidence=self.settings.confidence, seed=self.seed)

        def right(record: OutpatientRecord, name: str) -> bool:
            main = record.diagnoses[0]
            return self.space.key(name) == self.space.key(main.name, main.code)

        run = run_llm_conditions(
            self.llm_names,
            [self.queries[place].record for place in asking],
            rankers,
            llm,
            answerable=[bool(scored.answerable[place]) for place in asking],
            right=right,
            log=Path(self.out) / "llm.jsonl" if self.out is not None else None,
            seed=self.seed,
        )
        scored.put_llm(asking, run.outcomes, run.ranks)


def _without(scores: Floats, label: int) -> Floats:
    out = scores.copy()
    out[label] = -1.0
    return out


def fold_rows(fold: Fold, label: int) -> npt.NDArray[np.int64]:
    """Up to three rows of a label in a fold's index."""
    return np.flatnonzero(fold.lessons.table.labels == label)[:3].astype(np.int64)
