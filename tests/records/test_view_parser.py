"""The view splitter in a LlamaIndex pipeline."""

from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document, MetadataMode, NodeRelationship
from wardround.records.view_parser import ClinicalViewParser

TEXT = "CC: sore toe\nHPI: two days\nPMH: none\nExam: red toe\nDiagnosis: Gout"


def document(**metadata):
    return Document(
        text=TEXT, id_="visit-1", metadata={"department": "Rheumatology", "diagnosis": "Gout"} | metadata
    )


def test_a_document_becomes_one_node_per_view_without_the_diagnosis():
    nodes = ClinicalViewParser().get_nodes_from_documents([document()])
    assert [node.metadata["view"] for node in nodes] == [
        "chief_complaint",
        "history",
        "examination",
        "global",
    ]
    assert [node.node_id for node in nodes] == [f"visit-1:{node.metadata['view']}" for node in nodes]
    for node in nodes:
        assert "Gout" not in node.get_content(metadata_mode=MetadataMode.NONE)
        assert "Gout" not in node.get_content(metadata_mode=MetadataMode.EMBED)
        assert "Gout" not in node.get_content(metadata_mode=MetadataMode.LLM)
        assert node.metadata["record_id"] == "visit-1"
        assert node.metadata["department"] == "Rheumatology"
        assert node.metadata["headed"] is True


def test_nodes_know_their_place_and_their_neighbours():
    first, second, *_, last = ClinicalViewParser().get_nodes_from_documents([document()])
    assert TEXT[first.start_char_idx : first.end_char_idx] == first.text == "sore toe"
    assert (second.start_char_idx, second.end_char_idx) == (None, None)
    assert first.relationships[NodeRelationship.SOURCE].node_id == "visit-1"
    assert first.next_node.node_id == second.node_id
    assert second.prev_node.node_id == first.node_id
    assert last.next_node is None


def test_records_are_not_linked_to_one_another():
    two = [document(), Document(text="CC: cough", id_="visit-2")]
    nodes = ClinicalViewParser().get_nodes_from_documents(two)
    assert [node.next_node is None for node in nodes] == [False, False, False, True, False, True]


def test_a_parser_returns_from_its_dict_as_it_was():
    parser = ClinicalViewParser(language="zh", label_keys=("outcome",))
    again = ClinicalViewParser.from_dict(parser.to_dict())
    assert again.to_dict() == parser.to_dict()
    assert (again.language, again.label_keys) == ("zh", ("outcome",))


def test_it_runs_in_an_ingestion_pipeline_and_in_its_async_form():
    pipeline = IngestionPipeline(transformations=[ClinicalViewParser.from_defaults()])
    nodes = pipeline.run(documents=[document(record_id="R7")])
    assert [node.metadata["record_id"] for node in nodes] == ["R7"] * 4


async def test_it_runs_asynchronously():
    nodes = await ClinicalViewParser().aget_nodes_from_documents([document()])
    assert len(nodes) == 4


def test_a_document_that_is_only_its_diagnosis_gives_no_node():
    assert ClinicalViewParser().get_nodes_from_documents([Document(text="Diagnosis: Gout")]) == []
