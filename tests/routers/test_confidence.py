"""How sure retrieval is, and which lane that means."""

import pytest
from cases import eye_nodes, node
from wardround.knowledge.calibration import raw_confidence
from wardround.query import Confidence, Lane
from wardround.routers.confidence import confidence_of, lane_of
from wardround.settings import ConfidenceSettings


def test_confidence_of_nodes_is_the_papers_formula_over_their_scores_and_diagnoses():
    found = confidence_of(eye_nodes())
    expected = raw_confidence([0.82, 0.74, 0.61, 0.4], ["g", "g", "u", "k"])
    assert found.raw == pytest.approx(expected.raw)
    assert found.value == found.raw
    assert not found.calibrated


def test_records_agree_by_code_category_where_they_have_codes_and_by_name_else():
    nodes = [
        node("a", "x", "Acute glaucoma", 0.8, "H40.2", label=None),
        node("b", "x", "Primary glaucoma", 0.7, "H40.1", label=None),
        node("c", "x", "Glaucomas", 0.6, None, label=None),
    ]
    assert confidence_of(nodes[:2]).consensus == 1
    assert confidence_of(nodes).consensus == pytest.approx(1.5 / 2.1)


def test_a_record_without_a_diagnosis_agrees_with_nobody():
    nodes = [node("a", "x", "", 0.8, label=None), node("b", "x", "", 0.7, label=None)]
    assert confidence_of(nodes).consensus == pytest.approx(0.8 / 1.5)


def test_nothing_found_is_no_confidence_and_the_deep_lane():
    assert confidence_of([]).raw == 0
    assert lane_of(confidence_of([]), ConfidenceSettings()) is Lane.DEEP


@pytest.mark.parametrize(
    ("value", "lane"),
    [
        (1.0, Lane.VOTE),
        (0.8501, Lane.VOTE),
        (0.85, Lane.STANDARD),
        (0.51, Lane.STANDARD),
        (0.5, Lane.DEEP),
        (0, Lane.DEEP),
    ],
)
def test_the_lanes_part_where_the_paper_parts_them(value, lane):
    assert lane_of(Confidence(value, value, 0, 0, 0), ConfidenceSettings()) is lane


def test_the_settings_say_which_scale_decides():
    sure = Confidence(value=0.9, raw=0.3, top=0, consensus=0, margin=0, calibrated=True)
    assert lane_of(sure, ConfidenceSettings(scale="raw")) is Lane.DEEP
    assert lane_of(sure, ConfidenceSettings(scale="calibrated")) is Lane.VOTE
    assert lane_of(sure, ConfidenceSettings()) is Lane.VOTE
