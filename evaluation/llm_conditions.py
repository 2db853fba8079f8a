"""The conditions that ask a language model: what each is shown, how it is asked, and its resumable log.

Every condition answers the same way, so that only what it is shown differs: over ``choices``, word for word,
where the case has them, else freely. Answers are appended to a JSONL as they come, keyed by condition,
case and a hash of the prompt, so a run that stops goes on where it was. Source: MAP-RAG's comparison;
prompts and log are ours.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.deadline import Deadline
from ..models.failure import LlmError, add_tokens
from ..query import TokenUse
from .llm_asking import LLM_CONDITIONS, LlmCase, LlmCondition, Neighbour, ask_of, ranking_of

if TYPE_CHECKING:
    from ..models.ports import JsonLlm


__all__ = ["LLM_CONDITIONS", "LlmCase", "LlmCondition", "LlmOutcome", "LlmRunner", "Neighbour"]


@dataclass(frozen=True)
class LlmOutcome:
    """What came of one case.

    Attributes:
        condition: name.
        id: of the query.
        prompt_hash: of everything that was sent; another prompt is another outcome.
        ranking: diagnoses, best first; empty where the model failed.
        lane: that answered.
        tokens: of all tries.
        ms: wall time of the model; 0 where the vote answered.
        degraded: why the model gave no answer; None where it did.
    """

    condition: str
    id: str
    prompt_hash: str
    ranking: tuple[str, ...]
    lane: str
    tokens: TokenUse = field(default_factory=TokenUse)
    ms: float = 0.0
    degraded: str | None = None

    def to_json(self) -> dict[str, Any]:
        """One line of the log."""
        return asdict(self) | {"tokens": self.tokens.model_dump(), "ranking": list(self.ranking)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> LlmOutcome:
        """Read a line of the log."""
        return cls(**{**row, "ranking": tuple(row["ranking"]), "tokens": TokenUse(**row["tokens"])})


def voted(case: LlmCase, same: Callable[[str, str], bool]) -> tuple[str, ...]:
    """The vote's ranking: over the choices where there are some, matched by ``same``, else as it stands."""
    names = [name for name, _ in case.vote]
    if not case.choices:
        return tuple(names[:3])
    matched = [choice for name in names for choice in case.choices if same(name, choice)]
    return tuple(dict.fromkeys(matched))[:3]


class LlmRunner:
    """Runs conditions over cases, a few at a time, and keeps every outcome.

    Args:
        llm: the served model.
        log: JSONL that outcomes are appended to and read back from; None keeps nothing.
        same: whether two names are the same diagnosis; for the vote over choices.
        at_once: requests in flight.
        seed: orders the choices.
    """

    def __init__(
        self,
        llm: JsonLlm,
        *,
        log: Path | None = None,
        same: Callable[[str, str], bool] = lambda left, right: left.casefold() == right.casefold(),
        at_once: int = 4,
        seed: int = 0,
    ) -> None:
        self._llm = llm
        self._log = log
        self._same = same
        self._at_once = at_once
        self._seed = seed
        _end_last_line(log)
        self._done = {(one.condition, one.id, one.prompt_hash): one for one in read_log(log)}

    def run(
        self, name: str, cases: Sequence[LlmCase], *, progress: Callable[[int], None] | None = None
    ) -> list[LlmOutcome]:
        """Outcomes in the order of ``cases``; those already in the log are not asked again.

        Args:
            name: of the condition.
            cases: with the neighbours that the condition's ranker gave them.
            progress: called with 1 after each case.
        """
        return asyncio.run(self._run(name, cases, progress or (lambda _: None)))

    async def _run(
        self, name: str, cases: Sequence[LlmCase], progress: Callable[[int], None]
    ) -> list[LlmOutcome]:
        gate = asyncio.Semaphore(self._at_once)

        async def one(case: LlmCase) -> LlmOutcome:
            async with gate:
                outcome = await self._outcome(name, case)
            progress(1)
            return outcome

        return list(await asyncio.gather(*(one(case) for case in cases)))

    async def _outcome(self, name: str, case: LlmCase) -> LlmOutcome:
        if LLM_CONDITIONS[name].routed and case.lane == "vote":
            ranking = voted(case, self._same)
            if ranking:
                return LlmOutcome(name, case.id, "", ranking, "vote")
        ask = ask_of(name, case, seed=self._seed)
        known = self._done.get((name, case.id, ask.hash))
        if known:
            return known
        started = time.perf_counter()
        degraded = None
        try:
            ranking, tokens = await self._llm.acomplete_json(
                ask.messages,
                ask.schema,
                deadline=Deadline.after(self._llm.deadline_s),
                check=lambda value: ranking_of(value, ask.choices),
                max_tokens=ask.max_tokens,
            )
        except LlmError as error:
            ranking, tokens, degraded = voted(case, self._same), error.tokens, error.reason
        ms = (time.perf_counter() - started) * 1000
        outcome = LlmOutcome(name, case.id, ask.hash, ranking, ask.lane, tokens, round(ms, 1), degraded)
        if degraded is None:  # a failed call is asked again by the next run
            self._keep(outcome)
        return outcome

    def _keep(self, outcome: LlmOutcome) -> None:
        self._done[outcome.condition, outcome.id, outcome.prompt_hash] = outcome
        if self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(outcome.to_json(), ensure_ascii=False) + "\n")


def read_log(log: Path | None) -> list[LlmOutcome]:
    """Outcomes of earlier runs; a last line that a crash cut off is left out."""
    if log is None or not log.exists():
        return []
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            found.append(LlmOutcome.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _end_last_line(log: Path | None) -> None:
    """Close a line that a crash cut off, so that the next outcome starts on its own."""
    if log is not None and log.exists() and log.stat().st_size and not log.read_bytes().endswith(b"\n"):
        with log.open("a", encoding="utf-8") as out:
            out.write("\n")


def sampled(ids: Sequence[str], n: int, seed: int = 0) -> list[str]:
    """``n`` ids that depend on (seed, id) alone, not on the order of the file."""

    def place(one: str) -> str:
        return hashlib.sha256(f"{seed}\x1f{one}".encode("utf-8", "replace")).hexdigest()

    return sorted(ids, key=place)[:n]


def tokens_of(outcomes: Sequence[LlmOutcome]) -> TokenUse:
    """Tokens of many outcomes together."""
    total = TokenUse()
    for one in outcomes:
        total = add_tokens(total, one.tokens)
    return total
