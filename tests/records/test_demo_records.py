"""What the generator promises of its records, and what the shipped ones are."""

from collections import Counter
from itertools import islice

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.language.tokenizers import ClinicalTokenizer
from wardround.records.demo import demo_cases, demo_records, generate_records
from wardround.records.demo.cases import RECORDS_FILE, CaseKind, shipped_lines
from wardround.records.demo.compiled import name_pattern
from wardround.records.demo.knowledge import LANGUAGES
from wardround.records.demo.loading import shipped_table
from wardround.records.schema import View
from wardround.records.views import views_of

RECORDS = demo_records()
DEPARTMENTS = {part.department: part for part in shipped_table().departments if part.department}
NAMES = {d.code: d for part in shipped_table().departments for d in part.diagnosis}


def given_away(record):
    """Views that hold a name of one of the record's diagnoses."""
    names = [*NAMES[record.diagnoses[0].code].of(record.language), *(d.name for d in record.diagnoses)]
    pattern = name_pattern(names)
    return [view for view, text in views_of(record).items() if pattern.search(text)]


def test_the_shipped_file_is_what_the_generator_makes():
    assert RECORDS_FILE.read_text("utf-8").splitlines() == shipped_lines()


def test_the_shipped_file_is_small():
    assert RECORDS_FILE.stat().st_size < 2_000_000


def test_fewer_records_are_the_beginning_of_more():
    assert list(generate_records(20, 5)) == list(generate_records(60, 5))[:20]


def test_another_seed_gives_other_records():
    first, second = list(generate_records(30, 1)), list(generate_records(30, 2))
    assert not {r.text for r in first if r.text} & {r.text for r in second if r.text}


def test_records_are_made_one_at_a_time():
    assert len(list(islice(generate_records(10**12), 3))) == 3


def test_only_the_languages_asked_for_are_made():
    assert {r.language for r in generate_records(40, languages=("ja",))} == {"ja"}
    assert {r.language for r in RECORDS} == set(LANGUAGES)


@pytest.mark.parametrize("languages", [(), ("fr",)])
def test_a_language_that_is_not_written_is_refused(languages):
    with pytest.raises(ValueError, match="languages"):
        next(generate_records(1, languages=languages))


def test_ids_are_unique_and_every_record_is_dated_coded_and_in_a_known_department():
    assert len({r.id for r in RECORDS}) == len(RECORDS)
    assert all(r.date and r.diagnoses and all(d.code for d in r.diagnoses) for r in RECORDS)
    assert {r.department for r in RECORDS} == set(DEPARTMENTS)


def test_a_department_sees_patients_of_its_ages_only():
    for record in RECORDS:
        youngest, oldest = DEPARTMENTS[record.department].ages
        assert youngest <= record.age <= oldest


def test_most_labels_have_five_cases():
    codes = Counter(r.diagnoses[0].code for r in RECORDS)
    assert len(codes) >= 100
    assert sum(n >= 5 for n in codes.values()) > 0.7 * len(codes)


def test_prevalence_has_a_long_tail():
    counts = sorted(Counter(r.diagnoses[0].code for r in RECORDS).values(), reverse=True)
    assert counts[0] > 5 * counts[len(counts) // 2] / 2
    assert sum(counts[: len(counts) // 4]) > 0.4 * len(RECORDS)


def test_about_two_thirds_of_the_texts_have_headings_and_some_records_are_views():
    texts = [r for r in RECORDS if r.text]
    headings = {h.language: set() for h in shipped_table().common.heading}
    for h in shipped_table().common.heading:
        headings[h.language] |= {h.complaint, h.history, h.examination}
    headed = sum(any(r.text.lstrip("【■*").startswith(h) for h in headings[r.language]) for r in texts)
    assert 0.6 < headed / len(texts) < 0.75
    assert 0.08 < sum(r.views is not None for r in RECORDS) / len(RECORDS) < 0.16


def test_every_record_is_headed_text_or_none_is_where_that_is_asked():
    headed = list(generate_records(300, 9, headed=True))
    bare = list(generate_records(300, 9, headed=False))
    assert all(r.text and r.views is None for r in headed + bare)
    assert sum(r.diagnoses[0].name in r.text for r in headed) > 150
    assert not any(r.diagnoses[0].name in r.text for r in bare)


def test_some_records_miss_a_view_and_most_have_all():
    present = [set(views_of(r)) for r in RECORDS]
    complete = sum(len(p) == 4 for p in present) / len(present)
    assert 0.6 < complete < 0.95
    for view in (View.CHIEF_COMPLAINT, View.HISTORY, View.EXAMINATION):
        assert any(view not in p for p in present)


def test_no_shipped_record_names_its_diagnosis_outside_the_diagnosis_section():
    assert [(r.id, given_away(r)) for r in RECORDS if given_away(r)] == []


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**63),
    languages=st.sets(st.sampled_from(LANGUAGES), min_size=1).map(sorted),
    headed=st.sampled_from([None, True, False]),
)
def test_whatever_the_seed_records_are_whole_and_give_nothing_away(seed, languages, headed):
    for record in generate_records(12, seed, languages, headed):
        assert not given_away(record)
        assert views_of(record)
        content = record.text or "".join(record.views.values())
        assert "{" not in content
        assert "}" not in content
        assert record.language in languages


def evidence(record):
    return views_of(record)[View.GLOBAL]


def test_no_two_records_are_near_twins():
    grams = []
    for record in RECORDS:
        text = evidence(record)
        grams.append({text[i : i + 8] for i in range(max(1, len(text) - 7))})
    holders = {}
    for at, own in enumerate(grams):
        for gram in own:
            holders.setdefault(gram, []).append(at)
    twins = 0
    for at, own in enumerate(grams):
        shared = Counter(other for gram in own for other in holders[gram] if other < at)
        twins += any(n / len(own | grams[other]) > 0.8 for other, n in shared.most_common(3))
    assert twins / len(grams) < 0.005


def test_the_nearest_record_by_words_is_right_about_half_the_time():
    tokens = ClinicalTokenizer().tokenize_many([evidence(r) for r in RECORDS], [r.language for r in RECORDS])
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys(w for t in tokens for w in t))}
    ids = [[vocabulary[w] for w in t] for t in tokens]
    model = bm25s.BM25()
    model.index(bm25s.tokenization.Tokenized(ids=ids, vocab=vocabulary), show_progress=False)
    labels = [r.diagnoses[0].code[:3] for r in RECORDS]
    right = []
    for query in range(0, len(RECORDS), 4):
        scores = np.array(model.get_scores_from_ids(sorted(set(ids[query]))))
        scores[query] = -1
        right.append(labels[int(scores.argmax())] == labels[query])
    assert 0.45 < np.mean(right) < 0.75


def test_there_is_a_clear_an_ambiguous_and_an_unlike_case_in_each_language():
    cases = demo_cases()
    assert {(c.kind, c.language) for c in cases} == {(k, lang) for k in CaseKind for lang in LANGUAGES}
    assert len(cases) == 9
    assert cases[0].language == "en"


def test_no_demo_case_is_among_the_records_nor_names_a_diagnosis_of_the_table():
    texts = {r.text for r in RECORDS}
    for case in demo_cases():
        assert case.query.strip() not in texts
        assert case.department in DEPARTMENTS
        pattern = name_pattern(n for d in NAMES.values() for n in d.of(case.language))
        assert not pattern.search(case.query), case.title
        assert not pattern.search(case.title), case.title
