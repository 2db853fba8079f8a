"""The ICD-10 mapper among LlamaIndex nodes."""

import functools

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from wardround.errors import SettingsError
from wardround.postprocessors.icd10 import Icd10Mapper
from wardround.settings import Icd10Settings


@functools.cache
def mapper():
    return Icd10Mapper.from_defaults()


def node(name, score, **metadata):
    return NodeWithScore(node=TextNode(text="record", metadata={"diagnosis": name, **metadata}), score=score)


def test_a_diagnosis_without_a_code_gets_one_and_a_given_code_stays():
    nodes = mapper().postprocess_nodes(
        [
            node("heart attack", 0.9),
            node("asthma attack, chart code", 0.8, code="J45.901"),
            node("GERD", 0.7),
        ],
        QueryBundle("chest pain"),
    )
    found = [n.node.metadata["icd10"] for n in nodes]
    assert [one["code"] for one in found] == ["I21.9", "J45.901", "K21.9"]
    assert [one["stage"] for one in found] == ["alias", "record", "alias"]
    assert found[0]["title"] == "Acute myocardial infarction, unspecified"


def test_order_scores_and_other_metadata_stay():
    given = [node("gout", 0.2, record_id="a"), node("asthma", 0.9, record_id="b")]
    nodes = mapper().postprocess_nodes(given)
    assert [(n.score, n.node.metadata["record_id"]) for n in nodes] == [(0.2, "a"), (0.9, "b")]


def test_the_codes_are_not_shown_to_a_model():
    (one,) = mapper().postprocess_nodes([node("gout", 0.5)])
    assert "icd10" not in one.node.get_content(MetadataMode.LLM)
    assert "icd10" not in one.node.get_content(MetadataMode.EMBED)


def test_a_name_that_nothing_fits_borrows_from_the_most_similar_record():
    nodes = mapper().postprocess_nodes([node("zxqj", 0.9), node("gout", 0.8)])
    assert nodes[0].node.metadata["icd10"]["stage"] == "neighbour"
    assert nodes[0].node.metadata["icd10"]["code"] == nodes[1].node.metadata["icd10"]["code"]
    (alone,) = mapper().postprocess_nodes([node("zxqj", 0.9)])
    assert alone.node.metadata["icd10"]["code"] is None
    assert alone.node.metadata["icd10"]["stage"] == "unmapped"


def test_nodes_without_a_diagnosis_are_left_alone():
    plain = NodeWithScore(node=TextNode(text="page"), score=1.0)
    assert mapper().postprocess_nodes([plain])[0].node.metadata == {}


def test_it_is_a_tool_for_an_agent():
    tool = mapper().as_tool()
    assert tool.metadata.name == "icd10_code"
    assert tool.call(diagnosis="heart attack").raw_output["code"] == "I21.9"


def test_map_is_the_cascades_own():
    assert mapper().map("heart attack").code == "I21.9"
    assert [m.code for m in mapper().map_many(["gout", "zxqj"])] == [mapper().map("gout").code, None]


def test_settings_choose_system_and_cut_offs(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("code,title\nX1,wobbly knee\nX2,shaky elbow\n", encoding="utf-8")
    own = Icd10Mapper.from_defaults(Icd10Settings(system=str(path)))
    assert own.map("knee, wobbly").code == "X1"
    with pytest.raises(SettingsError, match="no code system"):
        Icd10Mapper.from_defaults(Icd10Settings(system="nowhere"))
