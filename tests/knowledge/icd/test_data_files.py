"""Every data file of coding loads under its schema and holds together."""

import json
import re

import pytest
from wardround.knowledge.icd import load_code_system
from wardround.knowledge.icd.canonical import canonical_word, cjk_text, english_tokens
from wardround.knowledge.icd.csv_list import list_format
from wardround.knowledge.icd.judge import FEATURES, JudgeWeights, shipped_judge
from wardround.knowledge.icd.lexicon import (
    data_file,
    denoising,
    opposites,
    read_table,
    spelling,
    word_classes,
)
from wardround.knowledge.icd.scoring import stage_scores

TABLES = {
    "aliases.csv": {"alias", "code"},
    "aliases_mesh.csv.gz": {"alias", "code", "source"},
    "aliases_icd9.csv.gz": {"alias", "code", "source"},
    "words.csv": {"word", "canonical"},
    "phrases.csv": {"phrase", "canonical"},
    "spelling.csv": {"pattern", "replacement"},
    "series.csv": {"symbol", "name"},
    "cjk.csv": {"language", "written", "canonical"},
    "han.csv": {"variant", "simplified"},
}


@pytest.mark.parametrize(("name", "headings"), TABLES.items())
def test_each_table_has_its_headings_and_rows(name, headings):
    rows = list(read_table(name))
    assert len(rows) > 10
    assert set(rows[0]) == headings


def test_no_data_file_is_without_a_test():
    toml = {"code_lists.toml", "denoise.toml", "opposites.toml", "stages.toml", "words.toml"}
    shipped = {entry.name for entry in data_file(".").iterdir() if entry.is_file()}
    assert shipped == set(TABLES) | toml | {"judge.json", "SOURCES.md"}


@pytest.mark.parametrize("name", ["aliases.csv", "aliases_mesh.csv.gz", "aliases_icd9.csv.gz"])
def test_every_alias_has_a_code_of_icd10cm(name):
    system = load_code_system("icd10cm")
    assert [row for row in read_table(name) if system.row_of(row["code"]) is None] == []


def test_no_alias_has_two_codes():
    seen = {}
    for row in read_table("aliases.csv"):
        key = " ".join(english_tokens(row["alias"]))
        assert seen.setdefault(key, row["code"]) == row["code"], row


def test_symbols_stand_for_names_that_are_words():
    for row in read_table("series.csv"):
        assert re.fullmatch(r"[a-z]{2,7}", row["symbol"]), row
        assert english_tokens(row["name"]), row


def test_words_and_phrases_are_stable():
    for row in read_table("words.csv"):
        canonical = tuple(row["canonical"].split())
        assert tuple(w for word in canonical for w in canonical_word(word)) == canonical, row


def test_cjk_rewrites_are_stable():
    for row in read_table("cjk.csv"):
        once = cjk_text(row["written"], row["language"])
        assert cjk_text(once, row["language"]) == once, row


def test_rules_load_under_their_schemas():
    assert spelling()
    assert word_classes().relax
    assert list_format().code & {"code"}
    assert all(len(group) > 1 for group in opposites().words)
    for pattern in (*denoising().remove, *(rule.pattern for rule in denoising().qualifiers)):
        re.compile(pattern)
    scores = stage_scores()
    assert len(scores.similar) == len(scores.similar_raw)
    assert list(scores.similar) == sorted(scores.similar)


def test_the_judge_knows_the_features_that_are_computed():
    weights = JudgeWeights.model_validate(json.loads(data_file("judge.json").read_text()))
    assert weights.features == FEATURES
    assert shipped_judge().hidden.shape[0] == len(FEATURES)


def test_the_tables_stay_small():
    assert sum(len(data_file(name).read_bytes()) for name in TABLES) < 2_000_000
