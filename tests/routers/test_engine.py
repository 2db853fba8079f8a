"""One query engine: a fresh query for every call, evidence retrieved once, and the choice explained."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from llama_index.core.schema import QueryBundle
from llama_index.core.tools.types import ToolMetadata
from wardround.app import Wardround
from wardround.errors import InputError, SettingsError
from wardround.indexes.cases import CaseIndex
from wardround.models.use import UseEmbedder
from wardround.query import ClinicalAnswer, ClinicalQuery, Confidence, Lane, Task
from wardround.records import generate_records
from wardround.routers.selector import ClinicalSelector
from wardround.settings import CasesSettings, ConfidenceSettings, PrivacySettings, Settings

CASE = "Painful red eye since last night with haloes around lights. IOP 50 mmHg, cornea hazy."


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Wardround:
    folder = tmp_path_factory.mktemp("router")
    settings = Settings(
        cases=CasesSettings(index=folder / "cases"),
        privacy=PrivacySettings(deidentified=True),
        cache=folder / "cache",
    )
    app = Wardround(settings)
    report = app.build_cases(generate_records(150, seed=7, languages=("en",)))
    assert report["records"] == 150
    return app


def test_an_answer_names_route_reason_evidence_and_index(app: Wardround) -> None:
    answer = app.query(CASE, department="ophthalmology", age=67)
    details = answer.details
    assert details.task is Task.DIAGNOSE
    assert details.route.engine in set(Lane)
    assert "confidence" in details.route.why
    assert details.diagnoses
    assert all(one.evidence for one in details.diagnoses)
    assert details.index_version == app.cases.version
    assert {"understand", "total"} <= set(details.timings_ms)
    assert answer.source_nodes
    assert answer.metadata is not None
    assert answer.metadata["selector_result"].reason == details.route.why


def test_an_answer_can_be_replayed_from_its_json(app: Wardround) -> None:
    answer = app.query(CASE)
    assert ClinicalAnswer.from_json(answer.to_json()).details == answer.details


def test_the_same_question_gets_the_same_answer(app: Wardround) -> None:
    first, second = app.query(CASE).to_json(), app.query(CASE).to_json()
    del first["timings_ms"], second["timings_ms"]
    assert first == second


def test_evidence_is_retrieved_once_and_handed_to_the_engine(
    app: Wardround, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[object] = []
    real = type(app.ranker).rank

    def counted(self: object, *args: object, **kwargs: object) -> object:
        searches.append(args)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(type(app.ranker), "rank", counted)
    app.query(CASE)
    assert len(searches) == 1


def test_what_a_caller_wrote_into_the_routers_fields_is_not_trusted(app: Wardround) -> None:
    planted = ClinicalQuery(CASE, department="ophthalmology")
    planted.task = Task.GUIDELINE
    planted.confidence = Confidence(1, 1, 1, 1, 1, calibrated=True)
    planted.evidence = {Task.DIAGNOSE: []}
    answer = app.engine.query(planted)
    assert answer.details.diagnoses
    assert answer.details.confidence is not None
    assert answer.details.confidence.raw < 1


def test_a_foreign_bundle_is_answered_like_a_string(app: Wardround) -> None:
    assert app.engine.query(QueryBundle(CASE)).details.diagnoses == app.engine.query(CASE).details.diagnoses


async def test_ten_questions_at_once_are_answered_as_one_by_one(app: Wardround) -> None:
    cases = [f"{CASE} Day {day}." for day in range(10)]
    together = await asyncio.gather(*(app.aquery(case) for case in cases))
    alone = [app.query(case) for case in cases]
    assert [a.details.diagnoses for a in together] == [a.details.diagnoses for a in alone]


def test_a_record_left_out_by_id_is_not_its_own_evidence(app: Wardround) -> None:
    record = next(generate_records(150, seed=7, languages=("en",)))
    views = {view.value: text for view, text in record.views.items()} if record.views else None
    asked = ClinicalQuery(record.text or "a case", views=views, record_ids=frozenset({record.id}))
    assert record.id not in {node.node_id for node in app.query(asked).source_nodes}


@pytest.mark.parametrize("cuts", [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0)])
def test_the_cuts_decide_the_lane(app: Wardround, cuts: tuple[float, float]) -> None:
    above, below = cuts
    settings = ConfidenceSettings(vote_above=above, deep_below=below, scale="raw")
    selector = ClinicalSelector(ranker=app.ranker, confidence=settings)
    names = [ToolMetadata(name=lane.value, description="") for lane in Lane]
    expected = {(0.0, 0.0): Lane.VOTE, (1.0, 1.0): Lane.DEEP, (1.0, 0.0): Lane.STANDARD}[cuts]
    assert list(Lane)[selector.select(names, CASE).ind] is expected


def test_a_router_without_the_lanes_engine_says_so(app: Wardround) -> None:
    selector = ClinicalSelector.from_defaults(app.ranker)
    with pytest.raises(SettingsError, match="no engine is named"):
        selector.select([ToolMetadata(name="opening_hours", description="")], CASE)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_question_is_an_input_error(app: Wardround, text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        app.query(text)


def test_records_that_nobody_declared_deidentified_build_nothing(tmp_path: Path) -> None:
    from wardround.errors import PrivacyError

    app = Wardround(Settings(cases=CasesSettings(index=tmp_path / "cases"), cache=tmp_path / "cache"))
    with pytest.raises(PrivacyError):
        app.build_cases(generate_records(5, seed=1))
    assert not (tmp_path / "cases").exists()


def test_changes_to_the_index_reach_the_next_answer(tmp_path: Path) -> None:
    settings = Settings(
        cases=CasesSettings(index=tmp_path / "cases"),
        privacy=PrivacySettings(deidentified=True),
        cache=tmp_path / "cache",
    )
    app = Wardround(settings)
    records = list(generate_records(40, seed=3, languages=("en",)))
    app.build_cases(records[:30])
    before = app.query(CASE).details.index_version
    app.add_cases(records[30:])
    assert len(app.cases) == 40
    assert app.query(CASE).details.index_version != before
    gone = app.query(CASE).source_nodes[0].node_id
    app.delete_cases([gone])
    assert gone not in {node.node_id for node in app.query(CASE).source_nodes}


@pytest.mark.parametrize("text", ["hello", "asdf qwer", "What is the capital of France?"])
def test_what_no_record_resembles_is_refused_and_not_guessed(app: Wardround, text: str) -> None:
    assert app.ranker.models.least_similar > 0
    details = app.query(text).details
    assert details.refused
    assert not details.diagnoses
    assert "no record resembles this" in details.route.why


def test_what_another_process_deleted_is_shown_no_more(tmp_path: Path) -> None:
    settings = Settings(
        cases=CasesSettings(index=tmp_path / "cases"),
        privacy=PrivacySettings(deidentified=True),
        cache=tmp_path / "cache",
    )
    serving, other = Wardround(settings), Wardround(settings)
    other.build_cases(generate_records(40, seed=3, languages=("en",)))
    gone = serving.query(CASE).source_nodes[0].node_id
    other.delete_cases([gone])
    assert gone not in {node.node_id for node in serving.query(CASE).source_nodes}


def test_calibrating_an_index_that_learned_nothing_learns_what_the_calibration_is_for(tmp_path: Path) -> None:
    cases = CaseIndex.build(
        generate_records(60, seed=5, languages=("en",)), tmp_path / "cases", embedder=UseEmbedder()
    )
    app = Wardround(Settings(cache=tmp_path / "cache"), cases=cases)
    assert app.ranker.models.scorer is None
    assert app.calibrate()["examples"] == 60
    assert app.ranker.models.scorer is not None
    assert app.query(CASE).details.confidence is not None


def test_other_labelled_records_teach_weights_mix_and_calibration(app: Wardround) -> None:
    others = list(generate_records(50, seed=99, languages=("en",)))
    scorer = app.ranker.models.scorer
    assert scorer is not None
    assert app.fit(others)["from_records"]["records"] == 50
    assert app.ranker.models.scorer is not None
    assert app.ranker.models.scorer.keys == scorer.keys
    assert app.calibrate(others)["examples"] == 50
    with pytest.raises(InputError, match="too few to calibrate"):
        app.calibrate(others[:10])
