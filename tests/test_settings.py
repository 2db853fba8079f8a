"""Settings: every value has a default, and what cannot be is refused with file, key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from wardround.errors import SettingsError
from wardround.settings import Settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.upper().startswith("WARDROUND_")]:
        monkeypatch.delenv(name)


def _file(folder: Path, text: str) -> Path:
    path = folder / "wardround.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_setting_has_a_default() -> None:
    settings = Settings.load()
    assert settings.cases.neighbours == 30
    assert settings.embedder.kind == "use"
    assert settings.llm.base_url is None
    assert not settings.privacy.deidentified


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    settings = Settings.load(_file(tmp_path, "[cases]\nneighbours = 50\n"))
    assert settings.cases.neighbours == 50
    assert settings.cases.candidates == Settings.load().cases.candidates


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARDROUND_CASES__NEIGHBOURS", "7")
    settings = Settings.load(_file(tmp_path, "[cases]\nneighbours = 50\ncandidates = 60\n"))
    assert (settings.cases.neighbours, settings.cases.candidates) == (7, 60)


def test_an_empty_file_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    assert Settings.load(_file(tmp_path, "")) == Settings.load()
    assert Settings.load(_file(tmp_path, "\ufeff[cases]\nneighbours = 5\n")).cases.neighbours == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cases]\nneighbors = 5\n", ["cases.neighbors", "did you mean cases.neighbours?"]),
        ("[casse]\nneighbours = 5\n", ["casse", "did you mean cases?"]),
        ("[zzzz]\nqqqq = 5\n", ["zzzz", "known are privacy, records"]),
        ("[cases]\nqqqq = 5\n", ["cases.qqqq", "known are", "privacy.scrub"]),
        ("[cases]\nneighbours = 0\n", ["cases.neighbours", "greater than or equal to 1", "got 0"]),
        ("[cases]\nneighbours = 'many'\n", ["cases.neighbours", "integer", "got 'many'"]),
        ("[embedder]\nkind = 'word2vec'\n", ["embedder.kind", "'use' or 'bge-m3'", "got 'word2vec'"]),
        ("[embedder]\nkind = 'bge-m3'\n", ["embedder", "needs path"]),
        (
            "[confidence]\nvote_above = 0.4\n",
            ["confidence", "deep_below (0.5) must not be above vote_above (0.4)"],
        ),
        ("[llm]\ndeadline_s = 0\n", ["llm.deadline_s", "greater than 0"]),
        ("cases = 3\n", ["cases", "got 3"]),
        ("[privacy]\nscrub_key = 'tooshort'\n", ["privacy.scrub_key", "at least 16"]),
        ("[llm]\nbase_url = ''\n", ["llm.base_url", "http://127.0.0.1:8000/v1", "got ''"]),
        ("[llm]\nbase_url = 'ftp://host/v1'\n", ["llm.base_url", "got 'ftp://host/v1'"]),
        ("[llm]\nbase_url = '127.0.0.1:8000/v1'\n", ["llm.base_url"]),
        ("[llm]\nbase_url = 'http:///v1'\n", ["llm.base_url"]),
        ("[llm]\nbase_url = 'http://host:99999/v1'\n", ["llm.base_url"]),
        ("[llm]\nbase_url = 'http://ho st/v1'\n", ["llm.base_url"]),
    ],
)
def test_an_unknown_key_or_impossible_value_names_file_key_and_what_is_allowed(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        Settings.load(path)
    for words in [str(path), *expected]:
        assert words in str(caught.value)


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    path = _file(tmp_path, "[cases]\nneighbours = 0\ncandidates = 0\n[icd10]\nsytem = 'icd10'\n")
    with pytest.raises(SettingsError) as caught:
        Settings.load(path)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("content", [b"[cases\n", b"cases = \xff\xfe", b"\0\0\0", b"x = " + b"[" * 100_000])
def test_what_is_not_toml_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "wardround.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="not valid TOML"):
        Settings.load(path)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(SettingsError, match="cannot be read") as caught:
            Settings.load(path)
        assert str(path) in str(caught.value)


def test_an_unknown_variable_is_refused_with_the_nearest_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARDROUND_CASES__NEIGHBORS", "7")
    with pytest.raises(SettingsError, match="did you mean WARDROUND_CASES__NEIGHBOURS"):
        Settings.load()


def test_an_impossible_variable_is_refused_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARDROUND_CASES__NEIGHBOURS", "-1")
    with pytest.raises(SettingsError, match=r"WARDROUND_CASES__NEIGHBOURS: cases\.neighbours") as caught:
        Settings.load(_file(tmp_path, ""))
    assert "wardround.toml" not in str(caught.value)


def test_a_section_given_as_broken_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARDROUND_CASES", "{not json")
    with pytest.raises(SettingsError, match="environment"):
        Settings.load()


def test_column_names_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARDROUND_RECORDS__COLUMNS__DIAGNOSIS", "Main Dx")
    assert {key.lower(): value for key, value in Settings.load().records.columns.items()} == {
        "diagnosis": "Main Dx"
    }


def test_the_api_key_is_not_shown_when_settings_are_printed(tmp_path: Path) -> None:
    settings = Settings.load(
        _file(tmp_path, "[llm]\nbase_url = 'http://127.0.0.1:1/v1'\napi_key = 'sesame'\n")
    )
    assert "sesame" not in repr(settings)
    assert settings.llm.api_key is not None
    assert settings.llm.api_key.get_secret_value() == "sesame"


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().cases.neighbours = 3  # type: ignore[misc]


def test_a_changed_section_is_checked_like_a_file() -> None:
    settings = Settings.load().changed("llm", base_url="http://127.0.0.1:1/v1")
    assert settings.llm.base_url == "http://127.0.0.1:1/v1"
    with pytest.raises(SettingsError, match=r"llm\.base_url"):
        Settings.load().changed("llm", base_url="")


def test_a_refused_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(_file(tmp_path, "[privacy]\nscrub_key = 'tooshort'\n"))
    assert "tooshort" not in str(caught.value)
