"""The hand-written table: each file loads, and what it says holds together."""

import shutil

import pytest
import simple_icd_10_cm as icd10cm
from wardround.errors import InputError
from wardround.records.demo.chance import Chance
from wardround.records.demo.compiled import Abbreviator, Compiler, name_pattern
from wardround.records.demo.knowledge import LANGUAGES
from wardround.records.demo.loading import DATA, load_table, shipped_table
from wardround.records.demo.templates import Template

TABLE = shipped_table()
DISEASES = [disease for part in TABLE.departments for disease in part.diagnosis]
PAPER_DEPARTMENTS = {"general practice", "ophthalmology", "internal medicine"}


def findings():
    for part in TABLE.departments:
        yield from (("complaint", key, f) for key, f in part.complaint.items())
        yield from (("history", key, f) for key, f in part.history.items())
        for site in (part.examination | part.lab).values():
            yield from (("examination", key, f) for key, f in site.items() if key != "normal")


FINDINGS = {(kind, key): finding for kind, key, finding in findings()}


def test_there_are_at_least_five_departments_and_the_papers_three_among_them():
    names = {part.department for part in TABLE.departments if part.department}
    assert len(names) >= 5
    assert names >= PAPER_DEPARTMENTS


def test_there_are_more_than_a_hundred_diagnoses_each_with_its_own_code():
    codes = [disease.code for disease in DISEASES]
    assert len(codes) >= 100
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("disease", DISEASES, ids=lambda d: d.code)
def test_a_diagnosis_has_a_billable_icd10cm_code(disease):
    assert icd10cm.is_valid_item(disease.code)
    assert icd10cm.is_leaf(disease.code)


def test_an_illness_on_the_side_has_a_billable_icd10cm_code():
    for comorbidity in TABLE.common.comorbidity:
        assert icd10cm.is_leaf(comorbidity.code), comorbidity.code


@pytest.mark.parametrize("disease", DISEASES, ids=lambda d: d.code)
def test_no_finding_of_a_diagnosis_gives_its_name_away(disease):
    for kind in ("complaint", "history", "examination"):
        for key in getattr(disease, kind):
            for language in LANGUAGES:
                pattern = name_pattern(disease.of(language))
                for phrase in FINDINGS[kind, key].of(language):
                    assert not pattern.search(phrase), f"{disease.en[0]}: {key}: {phrase}"


def test_an_illness_on_the_side_is_told_without_its_name():
    for comorbidity in TABLE.common.comorbidity:
        for at, language in enumerate(LANGUAGES):
            pattern = name_pattern([comorbidity.name[at]])
            assert not any(pattern.search(phrase) for phrase in comorbidity.of(language))


def test_every_finding_belongs_to_some_diagnosis():
    used = {
        (kind, key)
        for disease in DISEASES
        for kind in ("complaint", "history", "examination")
        for key in getattr(disease, kind)
    }
    assert set(FINDINGS) == used


def test_most_findings_of_a_red_eye_are_shared_by_several_diagnoses():
    group = [d for d in DISEASES if d.group == "red eye"]
    shared = [key for d in group for key in d.complaint if sum(key in other.complaint for other in group) > 1]
    assert len(shared) >= 0.8 * sum(len(d.complaint) for d in group)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phrase_compiles_and_every_diagnosis_has_something_to_deny_or_say(language):
    book = Compiler(TABLE).book(language)
    assert len(book.ailments) == len(DISEASES)
    assert len(book.headings) >= 3
    assert all(a.names and a.complaint and a.history and a.examination for a in book.ailments)


def test_chinese_and_japanese_phrases_are_not_english():
    for finding in FINDINGS.values():
        for phrase in (*finding.zh, *finding.ja):
            assert any(ord(c) > 0x2E80 for c in phrase) or phrase.isupper() or "{" in phrase, phrase


def test_japanese_phrases_that_contain_kana_do_not_stand_in_the_chinese_column():
    for finding in FINDINGS.values():
        for phrase in finding.zh:
            assert not any("\u3041" <= c <= "\u30ff" for c in phrase), phrase


def test_a_number_lies_between_its_mild_and_severe_ends_whichever_is_larger():
    falling = Template("Hb {10.8..7.2}", "en")
    values = [float(falling.fill(Chance(i), 0, i / 50).split()[1]) for i in range(51)]
    assert all(7.2 <= v <= 10.8 for v in values)
    assert sum(values[:10]) > sum(values[-10:])


def test_a_side_is_written_in_the_language_and_style():
    assert Template("{side} eye", "en").fill(Chance(0), 1, 0.5) == "left eye"
    assert Template("{side} eye", "en", brief=True).fill(Chance(0), 0, 0.5) == "R eye"
    assert Template("{side}眼", "ja").fill(Chance(0), 1, 0.5) == "左眼"


def test_an_unknown_slot_is_refused():
    with pytest.raises(ValueError, match="neither"):
        Template("pressure {high}", "en")


def test_abbreviations_replace_whole_english_words_only():
    shorten = Abbreviator({"with": "w/", "without": "w/o"}, "en")
    assert shorten("pain with fever without herewith") == "pain w/ fever w/o herewith"


def test_an_abbreviated_name_is_found_in_its_case_alone_and_beside_chinese():
    assert name_pattern(["MG"]).search("考虑MG可能")
    assert not name_pattern(["MG"]).search("aspirin 5 mg")
    assert name_pattern(["Gout"]).search("acute gout of the toe")


def copied(tmp_path):
    shutil.copytree(DATA, tmp_path / "demo")
    return tmp_path / "demo"


def spoil(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_a_misspelt_key_is_an_error_that_names_the_file(tmp_path):
    folder = copied(tmp_path)
    spoil(folder / "departments" / "ent.toml", "chatter", "chater")
    with pytest.raises(InputError, match=r"ent\.toml.*chater"):
        load_table(folder)


def test_a_finding_that_no_file_defines_is_an_error_that_names_the_diagnosis(tmp_path):
    folder = copied(tmp_path)
    spoil(
        folder / "departments" / "ent.toml", "examination = { wax = 0.93 }", "examination = { waxx = 0.93 }"
    )
    with pytest.raises(InputError, match=r"Impacted cerumen: examination \['waxx'\]"):
        load_table(folder)


def test_a_department_without_a_file_is_an_error(tmp_path):
    folder = copied(tmp_path)
    (folder / "departments" / "paediatrics.toml").unlink()
    with pytest.raises(InputError, match="paediatrics"):
        load_table(folder)


def test_a_probability_above_one_is_an_error_that_names_the_key(tmp_path):
    folder = copied(tmp_path)
    spoil(folder / "departments" / "ent.toml", "wax = 0.93", "wax = 9.3")
    with pytest.raises(InputError, match=r"ent\.toml.*wax"):
        load_table(folder)


def test_a_file_that_is_no_toml_is_an_error_that_names_it(tmp_path):
    folder = copied(tmp_path)
    (folder / "common.toml").write_text("manner = [", "utf-8")
    with pytest.raises(InputError, match=r"common\.toml"):
        load_table(folder)
