"""The object that other programs embed: settings in, one query engine out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import platformdirs
from llama_index.core.tools import BaseTool, QueryEngineTool, ToolMetadata

from .agents import DeepEngine, StandardEngine, VoteEngine
from .errors import IndexStoreError, InputError, SettingsError
from .indexes.cases import CaseIndex, Report
from .knowledge.calibration import FEWEST_EXAMPLES
from .knowledge.learning import LearnedModels, learn, store, stored, unlearned
from .knowledge.weights import ViewWeights
from .models.base import TextEmbedder
from .models.cache import EmbeddingCache
from .models.choose import embedder_from_settings, llm_from_settings
from .models.ports import JsonLlm
from .postprocessors.icd10 import Icd10Mapper
from .query import ClinicalAnswer, ClinicalQuery
from .records.demo import demo_records, demo_version
from .records.intake import Source, admitting, reading
from .records.progress import progress
from .records.schema import OutpatientRecord
from .retrievers.case_ranker import CaseRanker
from .retrievers.multi_view import MultiViewHybridRetriever
from .retrievers.teaching import calibration_from, models_from
from .routers.engine import ClinicalRouterQueryEngine
from .routers.selector import ClinicalSelector
from .settings import PrivacySettings, Settings


class Wardround:
    """Clinical retrieval behind one query engine.

    Parts are made on first use: an app that only codes diagnoses opens no index.

    Args:
        settings: everything that can be set; defaults where None.
        embedder: instead of the one that the settings name.
        llm: instead of the one that the settings name.
        cases: an open case index instead of the one that the settings name.

    Example:
        >>> app = Wardround.demo()                                                  # doctest: +SKIP
        >>> app.query("Red painful eye, IOP 42 mmHg").details.diagnoses[0].code    # doctest: +SKIP
        'H40.219'
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        embedder: TextEmbedder | None = None,
        llm: JsonLlm | None = None,
        cases: CaseIndex | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._given_embedder, self._given_llm, self._given_cases = embedder, llm, cases

    @classmethod
    def from_settings(cls, settings: Settings | str | Path | None = None) -> Self:
        """An app from settings, or from the path of their TOML file.

        Raises:
            SettingsError: an unknown key or an impossible value.
        """
        return cls(settings if isinstance(settings, Settings) else Settings.load(settings))

    @classmethod
    def demo(cls) -> Self:
        """The app over the synthetic records that ship with it, indexed in the user's cache on first use."""
        settings = Settings.load()
        folder = settings.cache or Path(platformdirs.user_cache_dir("wardround"))
        cases = settings.cases.model_copy(update={"index": folder / f"demo-{demo_version()}"})
        app = cls(settings.model_copy(update={"cases": cases, "privacy": PrivacySettings(deidentified=True)}))
        app._build_demo()
        return app

    @cached_property
    def embedder(self) -> TextEmbedder:
        """The embedder that the settings name."""
        return self._given_embedder or embedder_from_settings(self.settings.embedder)

    @cached_property
    def llm(self) -> JsonLlm | None:
        """The language model that the settings name; None where they name none."""
        return self._given_llm or llm_from_settings(self.settings.llm)

    @cached_property
    def cases(self) -> CaseIndex:
        """The case index.

        Raises:
            IndexStoreError: there is none, or it is damaged or was built with other models.
        """
        if self._given_cases is not None:
            return self._given_cases
        return CaseIndex.open(self.settings.cases.index, embedder=self.embedder, **self._index_options())

    @cached_property
    def icd10(self) -> Icd10Mapper:
        """The coder: ``app.icd10.map("heart attack")``."""
        return Icd10Mapper.from_defaults(self.settings.icd10)

    @cached_property
    def ranker(self) -> CaseRanker:
        """From a case to ranked records and diagnoses, with what the index has learned."""
        models = stored(self.cases) or unlearned(self.cases, table=self._weights())
        return CaseRanker(self.cases, models=models, candidates=self.settings.cases.candidates)

    @cached_property
    def engine(self) -> ClinicalRouterQueryEngine:
        """The one query engine; every question goes through it."""
        selector = ClinicalSelector(
            ranker=self.ranker, confidence=self.settings.confidence, postprocessors=[self.icd10]
        )
        shared: dict[str, Any] = {
            "retriever": self.as_retriever(),
            "node_postprocessors": [self.icd10],
            "coder": self.icd10.map,
            "index_version": lambda: self.cases.version,
            "vote_power": self.settings.cases.vote_power,
        }
        engines = [
            VoteEngine(**shared), StandardEngine(llm=self.llm, **shared), DeepEngine(llm=self.llm, **shared),
        ]  # fmt: skip
        tools = [
            QueryEngineTool(engine, ToolMetadata(name=engine.name, description=_ABOUT[engine.name]))
            for engine in engines
        ]
        return ClinicalRouterQueryEngine(selector, tools)

    def query(self, text: str | ClinicalQuery, **known: Any) -> ClinicalAnswer:
        """Answer a question.

        Args:
            text: the case or question.
            **known: what is known of it: ``department``, ``age``, ``sex``, ``language``, ``views`` and the
                other caller's fields of :class:`ClinicalQuery`.

        Raises:
            InputError: an empty question, or an unknown view.
            IndexStoreError: there is no index, or it is damaged.
            ModelError: the embedder cannot be loaded.
        """
        query = _asked(text, known)
        return self._up_to_date().query(query)

    async def aquery(self, text: str | ClinicalQuery, **known: Any) -> ClinicalAnswer:
        """:meth:`query` without blocking the event loop."""
        query = _asked(text, known)
        engine = await asyncio.to_thread(self._up_to_date)
        return await engine.aquery(query)

    def as_query_engine(self) -> ClinicalRouterQueryEngine:
        """The query engine, for other LlamaIndex applications."""
        return self.engine

    def as_retriever(self, top_k: int | None = None) -> MultiViewHybridRetriever:
        """The retriever of similar cases.

        Args:
            top_k: nodes a query; as many as vote where None.
        """
        return MultiViewHybridRetriever(
            index=self.cases,
            weights=self.ranker.models.weights,
            top_k=top_k or self.settings.cases.neighbours,
            candidates=self.settings.cases.candidates,
        )

    def as_tools(self) -> list[BaseTool]:
        """Tools for a LlamaIndex agent: ``diagnose_case`` and ``lookup_icd10``."""
        about = ToolMetadata(name="diagnose_case", description=_ABOUT["diagnose_case"])
        return [QueryEngineTool(self.engine, about), self.icd10.as_tool()]

    def build_cases(self, source: Source, *, format: str | None = None) -> dict[str, Any]:  # noqa: A002
        """Build the case index that the settings name, and learn from it.

        Args:
            source: file, folder, several of them, or records.
            format: of files; sniffed where None.

        Returns:
            What came of it: counts, rejected rows, what scrubbing removed, what was learned.

        Raises:
            PrivacyError: the settings neither declare the records de-identified nor ask for scrubbing.
            InputError: nothing usable, or more bad rows than ``records.max_reject_share``.
            IndexStoreError: the folder is in use, or not writable.
        """
        with self._admitting(source, format) as (records, report):
            index = CaseIndex.build(
                records,
                self.settings.cases.index,
                embedder=self.embedder,
                whitening=self.settings.embedder.whitening,
                **self._index_options(),
            )
        self._renew(index)
        return _told(index.report) | report | {"index": str(index.path), "learned": self.fit()}

    def add_cases(self, source: Source, *, format: str | None = None) -> dict[str, Any]:  # noqa: A002
        """Add records to the index; one whose id is known replaces the old one. Learns anew.

        Arguments, result and errors as :meth:`build_cases`.
        """
        index = self.cases
        with self._admitting(source, format) as (records, report):
            changed = index.replace(records)
        return _told(changed) | report | {"learned": self.fit()}

    def delete_cases(self, ids: Sequence[str]) -> dict[str, Any]:
        """Delete records by id, text and vectors, and forget what was learned from them.

        Raises:
            IndexStoreError: another process is writing.
        """
        report = _told(self.cases.delete(ids))
        return report | {"learned": self.fit()}

    def fit(self, records: Source | None = None) -> dict[str, Any]:
        """Learn label scorer, view weights, mix and calibration, and keep them with the index.

        Args:
            records: labelled records from which view weights, mix and calibration are learned; the scorer and
                the priors always come from the index. The index's own records where None.

        Returns:
            What was found, including departments with too few records to have weights of their own.
        """
        with progress("Learning") as tick:
            models = learn(self.cases.snapshot(), table=self._weights(), tick=tick)
            if records is not None:
                with reading(records, self.settings.records) as (labelled, _):
                    taught = models_from(
                        labelled,
                        self._weights(),
                        tick,
                        embedder=self.embedder,
                        whitening=self.settings.embedder.whitening,
                        **self._index_options(),
                    )
                models = replace(
                    models, weights=taught.weights, mix=taught.mix, calibration=taught.calibration,
                    report=models.report | {"from_records": taught.report},
                )  # fmt: skip
        return self._keep(models)

    def calibrate(self, records: Source | None = None) -> dict[str, Any]:
        """Fit confidence to how often the leading diagnosis was right, and keep that with the index.

        Args:
            records: labelled records that are asked; a record is never its own evidence. The index's own
                records, each left out in turn, where None.

        Raises:
            InputError: too few labelled records.
        """
        models = self.ranker.models
        with progress("Calibrating") as tick:
            if records is None:
                learned = learn(self.cases.snapshot(), table=self._weights(), tick=tick)
                calibration = learned.calibration
                models = models if models.scorer else learned  # a calibration fits only what it was made for
            else:
                with reading(records, self.settings.records) as (labelled, _):
                    calibration = calibration_from(self.ranker, labelled, tick)
        if calibration is None:
            raise InputError(
                f"fewer than {FEWEST_EXAMPLES} records have a diagnosis, too few to calibrate on; give more"
            )
        self._keep(replace(models, calibration=calibration))
        return {"examples": calibration.examples, "right": calibration.base_rate, **calibration.to_json()}

    def _keep(self, models: LearnedModels) -> dict[str, Any]:
        store(self.cases, models)
        self._renew(self.cases)
        return models.report

    def _up_to_date(self) -> ClinicalRouterQueryEngine:
        """The engine over what the index holds now, whoever changed it: a deleted record is shown no more."""
        if self.cases.refresh_if_changed():
            self._renew(self.cases)
        return self.engine

    def _renew(self, index: CaseIndex) -> None:
        """Let everything that stands on the index be made anew."""
        for name in ("ranker", "engine"):
            self.__dict__.pop(name, None)
        self.__dict__["cases"] = index

    def _weights(self) -> ViewWeights:
        path = self.settings.cases.weights
        return ViewWeights.load(path) if path else ViewWeights.shipped()

    def _index_options(self) -> dict[str, Any]:
        return {
            "cache": EmbeddingCache(self.settings.cache / "embeddings" if self.settings.cache else None),
            "batch_size": self.settings.embedder.batch_size,
            "search_threads": self.settings.cases.search_threads,
        }

    def _admitting(
        self,
        source: Source,
        format: str | None,  # noqa: A002
    ) -> AbstractContextManager[tuple[Iterator[OutpatientRecord], dict[str, Any]]]:
        index = self.settings.cases.index.absolute()
        if not index.name:
            raise SettingsError(f"cases.index = {index}: not a folder that an index can have; name another")
        return admitting(
            source,
            self.settings.records,
            self.settings.privacy,
            format=format,
            rejects=index.with_name(f"{index.name}.rejects.jsonl"),
        )

    def _build_demo(self) -> None:
        """Build the demo index where it is missing or was built with other models."""
        try:
            fresh = stored(self.cases) is not None
        except IndexStoreError:
            fresh = False
        if not fresh:
            self.build_cases(demo_records())


def _asked(text: str | ClinicalQuery, known: dict[str, Any]) -> ClinicalQuery:
    query = ClinicalQuery.of(text, **known)
    if not query.query_str.strip() and not any(part.strip() for part in (query.views or {}).values()):
        raise InputError("the question is empty; describe the case in a sentence or more")
    return query


def _told(report: Report | None) -> dict[str, Any]:
    return asdict(report) if report else {}


_ABOUT = {
    "vote": "similar past records vote on the diagnosis; no language model",
    "standard": "a language model names diagnoses from the evidence of similar past records",
    "deep": "a language model reasons step by step over similar past records",
    "diagnose_case": "What could this case have? Give the findings; answers with diagnoses, "
    "ICD-10 codes and the similar past records they rest on.",
}
