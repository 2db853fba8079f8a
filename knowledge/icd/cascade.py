"""The coding cascade: code, equal name, alias, similar name, neighbours' diagnosis, or plainly nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .candidates import Hits
from .denoise import denoise, names_nothing, tidy
from .disk_cache import cache_key
from .grounding import is_grounded
from .judge import FEATURES, Floats, Judge, PairFeatures, shipped_judge
from .lookup import find_equal, find_relaxed
from .match import IcdCandidate, IcdMatch, Neighbour, Stage
from .opposites import contradicts
from .scoring import StageScores, stage_scores
from .system import CodeSystem, RejectedRow, Term, TermKind, code_key
from .terms import read_user_aliases, shipped_aliases
from .wordings import Name, Wordings

_BATCH = 512
_FOUND = 50
_LONGEST = 1000
_LONGEST_CODE = 40
_NEGLIGIBLE = 0.02
_ALTERNATIVES_BELOW = 0.999
_CONTRADICTIONS = FEATURES.index("contradictions")
_NO_NAME = Name("", (), "", "", frozenset(), frozenset(), False, False)


@dataclass
class _Draft:
    text: str
    clean: str
    qualifiers: tuple[str, ...]
    name: Name
    stage: Stage = Stage.UNMAPPED
    rows: list[tuple[int, float]] = field(default_factory=list)
    sure: bool = False
    past: bool = False
    closed: bool = False
    grounded: bool = False


class IcdCascade:
    """Codes names of diagnoses (MAP-RAG's cascade; scores, guards and the learned judge are ours).

    Args:
        system: the code system.
        aliases: CSV ``alias,code`` of local names, which win over every other name.
        min_score: a similar name below this is no match; the shipped cut-off where None.
        min_margin: nor is one whose lead over another category is smaller.
        prefer_leaf: give the "unspecified" leaf for a code that is no leaf, as billing wants it.
        judge: of candidates; the shipped one where None.
        wordings: of the system; its own with all alias tables where None.

    Example:
        >>> cascade = IcdCascade(load_code_system("icd10cm"))
        >>> cascade.map("1. renal tumour, malignant ?").code
        'C64'
    """

    def __init__(
        self,
        system: CodeSystem,
        *,
        aliases: str | Path | None = None,
        min_score: float | None = None,
        min_margin: float | None = None,
        prefer_leaf: bool = False,
        judge: Judge | None = None,
        wordings: Wordings | None = None,
    ) -> None:
        self.system = system
        self._scores: StageScores = stage_scores()
        self._min_score = self._scores.min_score if min_score is None else min_score
        self._min_margin = self._scores.min_margin if min_margin is None else min_margin
        self._prefer_leaf = prefer_leaf
        self._judge = judge or shipped_judge()
        self.rejected_aliases: tuple[RejectedRow, ...] = ()
        own: tuple[Term, ...] = ()
        if aliases is not None:
            read = read_user_aliases(Path(aliases), system)
            own, self.rejected_aliases = read.terms, read.rejected
        inputs = (system.name, system.version, *(f"{term.row}:{term.text}" for term in own))
        self._local = {Name.of(term.text, system.language).strict: term.row for term in own}
        self.wordings = wordings or Wordings(
            system, chain(shipped_aliases(system), own), cache=cache_key("wordings", *inputs)
        )

    def warm_up(self) -> None:
        """Build what the first name would otherwise wait for."""
        self.map("warm up", top_k=2)

    @cached_property
    def _features(self) -> PairFeatures:
        return PairFeatures(self.wordings)

    def map(self, text: str, neighbours: Sequence[Neighbour] = (), top_k: int = 5) -> IcdMatch:
        """Code one text; never raises for any string.

        Args:
            text: a diagnosis as somebody wrote it, or a code.
            neighbours: diagnoses of the most similar records, best first; asked last.
            top_k: how many candidates to give back.
        """
        return self.map_many([text], [neighbours], top_k)[0]

    def map_many(
        self,
        texts: Sequence[str],
        neighbours: Sequence[Sequence[Neighbour]] | None = None,
        top_k: int = 5,
    ) -> list[IcdMatch]:
        """Code many texts in batches; equal to :meth:`map` of each.

        With ``top_k`` 1 texts with an equal name are not compared any further, which is faster.
        """
        matches: list[IcdMatch] = []
        for start in range(0, len(texts), _BATCH):
            drafts = [self._draft(text) for text in texts[start : start + _BATCH]]
            open_ones = [
                d
                for d in drafts
                if not d.closed and (not d.sure or (top_k > 1 and d.stage is not Stage.CODE))
            ]
            self._compare(open_ones)
            for at, draft in enumerate(drafts):
                near = neighbours[start + at] if neighbours else ()
                matches.append(self._decide(draft, near, max(1, top_k)))
        return matches

    def _draft(self, text: str) -> _Draft:
        if len(text) > _LONGEST:
            return _Draft(text, "", (), _NO_NAME, closed=True)
        bare = tidy(text)
        name = Name.of(bare[:400], self.system.language)
        draft = _Draft(text, bare, (), name)
        if self._is_code(draft):
            return draft
        if not self._is_name(name) and names_nothing(bare):
            draft.closed = True
        else:
            self._look_up(draft, name)
        return draft

    def _is_code(self, draft: _Draft) -> bool:
        key = code_key(draft.clean) if len(draft.clean) <= _LONGEST_CODE else ""
        row = self.system.rows.get(key)
        if row is None and key not in self.system.extended:
            return False
        draft.stage, draft.sure = Stage.CODE, True
        draft.rows = [(row if row is not None else self.system.extended[key][0], 1.0)]
        return True

    def _is_name(self, name: Name) -> bool:
        """Whether a name is letter for letter in the system, an alias table or the local names."""
        kinds = self.wordings.kinds
        found = self.wordings.literal.get(name.literal, ())
        return name.strict in self._local or any(kinds[at] <= TermKind.ALIAS for at in found)

    def _look_up(self, draft: _Draft, written: Name) -> None:
        """Find a name equal to the text as written, else to what is left of it without clutter."""
        bare, cleaned = draft.clean, denoise(draft.clean)
        draft.clean, draft.qualifiers = cleaned.text, cleaned.qualifiers
        name = Name.of(cleaned.text, self.system.language) if cleaned.text != bare else written
        if self._equal(draft, written):
            if name.strict != written.strict:
                draft.qualifiers = ()
            return
        if cleaned.past:
            kind = "family history of" if "family" in cleaned.qualifiers else "history of"
            draft.past, name = True, Name.of(f"{kind} {cleaned.text}", self.system.language)
        elif cleaned.text != bare and (self._is_code(draft) or names_nothing(cleaned.text)):
            draft.closed = draft.stage is Stage.UNMAPPED
            return
        draft.name = name
        if (name is not written and self._equal(draft, name)) or draft.past:
            return
        if relaxed := find_relaxed(name, self.wordings):
            draft.rows = [(relaxed.rows[0], self._scores.of(relaxed))]
            draft.stage, draft.sure = Stage(relaxed.stage), True

    def _equal(self, draft: _Draft, name: Name) -> bool:
        if name.strict and (row := self._local.get(name.strict)) is not None:
            draft.stage, draft.rows, draft.sure = Stage.ALIAS, [(row, self._scores.local)], True
            return True
        found = find_equal(name, self.wordings)
        if found is None or not found.unique:
            return False
        draft.stage, draft.sure = Stage(found.stage), True
        draft.rows = [(found.rows[0], self._scores.of(found))]
        return True

    def _compare(self, drafts: list[_Draft]) -> None:
        """Add the similar names of each draft, best first, with scores that say how likely each is."""
        if not drafts:
            return
        names = [draft.name for draft in drafts]
        grams = self.wordings.grams
        hits = grams.nearest(grams.encode([name.units for name in names]), _FOUND)
        features = self._features(names, hits)
        probability = self._judge(features)
        probability[features[:, _CONTRADICTIONS] > 0] *= np.float32(self._scores.contradiction)
        lone = np.array([self._is_lone_unknown(name) for name in names], bool)
        probability[lone[hits.query]] *= np.float32(self._scores.lone_unknown)
        grounded = self._grounded(names, hits, probability)
        probability[~grounded] *= np.float32(self._scores.contradiction)
        grounded &= features[:, _CONTRADICTIONS] == 0
        rows = self.wordings.rows[hits.term]
        order = np.lexsort((rows, -probability, hits.query))
        queries, ranked, scores = hits.query[order], rows[order].tolist(), probability[order].tolist()
        fits = grounded[order].tolist()
        bounds = np.searchsorted(queries, np.arange(len(drafts) + 1))
        for at, draft in enumerate(drafts):
            found: dict[int, float] = {}
            fitting: set[int] = set()
            for pair in range(bounds[at], bounds[at + 1]):
                found.setdefault(ranked[pair], scores[pair])
                if fits[pair]:
                    fitting.add(ranked[pair])
            draft.rows += self._weighed(found, skip={row for row, _ in draft.rows})
            draft.grounded = bool(draft.rows) and draft.rows[0][0] in fitting

    def _grounded(self, names: Sequence[Name], hits: Hits, probability: Floats) -> npt.NDArray[np.bool_]:
        """Which pairs share what a disease is called by; pairs that hardly count are not looked at."""
        units, cjk = self.wordings.units, self.wordings.cjk
        out = np.zeros(len(probability), bool)
        for pair in np.flatnonzero(probability >= _NEGLIGIBLE).tolist():
            out[pair] = is_grounded(names[hits.query[pair]].units, units[hits.term[pair]], cjk=cjk)
        return out

    def _is_lone_unknown(self, name: Name) -> bool:
        """Whether a name is one short word that no wording has: an abbreviation nobody explained."""
        words = name.units
        if self.wordings.cjk or len(words) != 1 or len(words[0]) > self._scores.lone_letters:
            return False
        return not self.wordings.knows_word(words[0])

    def _weighed(self, found: dict[int, float], skip: set[int]) -> list[tuple[int, float]]:
        """Candidates by probability and by what their category gathers; scores fall from the leader's."""
        if not found:
            return []
        categories = {row: self._category(row) for row in found}
        gathered: dict[int, float] = defaultdict(float)
        for row, p in found.items():
            gathered[categories[row]] += p
        whole = max(sum(gathered.values()), 1e-9)
        weighed = {row: p * gathered[categories[row]] ** self._scores.agreement for row, p in found.items()}
        ranked = sorted(found, key=lambda row: (-weighed[row], row))
        leader = ranked[0]
        sums = min(1.0, gathered[categories[leader]])
        score = self._scores.of_similar(sums * gathered[categories[leader]] / whole)
        top = max(weighed[leader], 1e-12)
        return [(row, score * weighed[row] / top) for row in ranked if row not in skip]

    def _category(self, row: int) -> int:
        return int(self._features.category_ids[row])

    def _decide(self, draft: _Draft, neighbours: Sequence[Neighbour], top_k: int) -> IcdMatch:
        system = self.system
        rows = draft.rows
        barred = draft.closed or draft.past
        if draft.stage is Stage.UNMAPPED and draft.grounded and not barred:
            enough = rows[0][1] >= self._min_score and self._margin(rows) >= self._min_margin
            draft.stage = Stage.FUZZY if enough else Stage.UNMAPPED
        borrowed = None
        if draft.stage is Stage.UNMAPPED and not barred:
            borrowed = self._borrow(draft, neighbours)
        if borrowed:
            draft.stage = Stage.NEIGHBOUR
            rows = [borrowed, *(pair for pair in rows if pair[0] != borrowed[0])]
        if draft.sure:
            rows = [rows[0], *((row, min(p, _ALTERNATIVES_BELOW * rows[0][1])) for row, p in rows[1:])]
        listed = list({self._final(row): p for row, p in reversed(rows[: top_k + 3])}.items())[::-1]
        candidates = tuple(
            IcdCandidate(system.codes[row], system.titles[row], round(p, 4)) for row, p in listed[:top_k]
        )
        score = round(rows[0][1], 4) if rows else 0.0
        margin = round(score if draft.sure else self._margin(rows), 4)
        if draft.stage is Stage.UNMAPPED:
            return IcdMatch(draft.text, draft.stage, None, None, score, margin, candidates, draft.qualifiers)
        code, title = system.codes[listed[0][0]], system.titles[listed[0][0]]
        leaf = system.codes[system.unspecified_leaf(listed[0][0])]
        if draft.stage is Stage.CODE and (key := code_key(draft.clean)) in system.extended:
            code = leaf = _dotted(key)
            title = system.extended[key][1]
        return IcdMatch(
            draft.text, draft.stage, code, title, score, margin, candidates, draft.qualifiers, leaf
        )

    def _final(self, row: int) -> int:
        return self.system.unspecified_leaf(row) if self._prefer_leaf else row

    def _margin(self, rows: Sequence[tuple[int, float]]) -> float:
        if not rows:
            return 0.0
        leader = self._category(rows[0][0])
        rival = next((p for row, p in rows[1:] if self._category(row) != leader), 0.0)
        return rows[0][1] - rival

    def _borrow(self, draft: _Draft, neighbours: Sequence[Neighbour]) -> tuple[int, float] | None:
        """Row and score of the first neighbour that can be coded itself and does not contradict the text."""
        for neighbour in neighbours:
            row = self.system.row_of(neighbour.code) if neighbour.code else None
            name = Name.of(neighbour.name[:400], self.system.language)
            if row is None and (found := find_equal(name, self.wordings)) and found.unique:
                row = found.rows[0]
            if row is not None and not contradicts(draft.name.poles, name.poles):
                return row, self._scores.neighbour * max(0.0, min(1.0, neighbour.score))
        return None


def _dotted(key: str) -> str:
    return f"{key[:3]}.{key[3:]}" if len(key) > 3 else key
