"""De-identification: what is removed, what moves, and what must stay."""

import datetime as dt
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wardround.errors import PrivacyError
from wardround.records import OutpatientRecord, Scrubber, View, require_deidentified, scrubber_for
from wardround.records.dates import parse_date
from wardround.records.deid_dates import month_names
from wardround.records.deid_tables import deid_tables, passes
from wardround.settings import PrivacySettings

KEY = "a secret of the hospital"


def scrub(text, *known, patient="p1"):
    return Scrubber(KEY).scrub_text(text, identifiers=known, patient_id=patient)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Seen by Dr. Smith today.", "Seen by Dr. [NAME] today."),
        ("Mrs Anne-Marie O'Brien reports pain", "Mrs [NAME] reports pain"),
        ("Attending: John Q. Public, MD", "Attending: [NAME]"),
        ("Name: Jane Doe\nCough", "Name: [NAME]\nCough"),
        ("主治医师：李建国，患者咳嗽", "主治医师：[NAME]，患者咳嗽"),
        ("氏名：山田　太郎\n発熱", "氏名：[NAME]\n発熱"),
        ("MRN: 00123456 cough", "MRN: [ID] cough"),
        ("Patient ID AB-12345, cough", "Patient ID [ID], cough"),
        ("住院号：ZY20230145，咳嗽", "住院号：[ID]，咳嗽"),
        ("診察券番号 １２３４５６７ 咳", "診察券番号 [ID] 咳"),
        ("call 555-123-4567 or (555) 123-4567", "call [PHONE] or [PHONE]"),
        ("Tel: +44 20 7946 0958.", "Tel: [PHONE]."),
        ("phone 5551234567 BP 120/80", "phone [PHONE] BP 120/80"),
        ("电话13800138000，咳嗽", "电话[PHONE]，咳嗽"),
        ("联系电话：010-62345678", "联系电话：[PHONE]"),
        ("電話 03-1234-5678、携帯 ０９０－１２３４－５６７８", "電話 [PHONE]、携帯 [PHONE]"),
        ("write to jane.doe+x@mail.example.org now", "write to [EMAIL] now"),
        ("see https://example.org/a?b=1 and www.example.org", "see [URL] and [URL]"),
        ("SSN 123-45-6789", "SSN [ID]"),
        ("身份证11010519491231002X号", "身份证[ID]号"),
        ("マイナンバー：1234 5678 9018", "マイナンバー：[ID]"),
        ("lives at 12 Long Street, Springfield. Cough", "lives at [ADDRESS]. Cough"),
        ("from 221B Baker Street in pain", "from [ADDRESS] in pain"),
        ("Springfield, IL 62704 resident", "Springfield, IL [ADDRESS] resident"),
        ("住址：北京市海淀区中关村大街1号，咳嗽", "住址：[ADDRESS]，咳嗽"),
        ("家在上海市徐汇区漕溪北路88号502室，咳嗽", "家在[ADDRESS]，咳嗽"),
        ("〒100-0001 東京都千代田区千代田1-1 発熱", "[ADDRESS] [ADDRESS] 発熱"),
        ("93-year-old woman", "90-year-old woman"),
        ("患者，男，101岁，咳嗽", "患者，男，90岁，咳嗽"),
        ("９５歳女性", "90歳女性"),
        ("Age: 95, sex F", "Age: 90, sex F"),
    ],
)
def test_what_identifies_is_removed(text, expected):
    assert scrub(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "BP 120/80 mmHg, HR 98, RR 18, T 38.5, SpO2 95%",
        "K+ 5.9 mmol/L, Na+ 140, WBC 5600 5800 6100, PLT 150-450, Hb 13.2",
        "escitalopram 5/10/20 mg, prednisolone 40-30-20 mg, amoxicillin 875/125 mg",
        "IOP 24/22 mmHg, VA 20/20, 20/200, 0.5, cup-to-disc 0.8",
        "for 3-4 weeks, 2 to 3 times a day, 1-0-1, 10-12-14 days",
        "+2 oedema, protein +1, ANA 1:1280, titre 1/640, GCS 15/15, pain 7/10",
        "May take 2 tablets; may 2 hours later; march of symptoms; T1N0M0, L4-L5, C5/6",
        "pH 7.35, pCO2 40, HCO3 24, lactate 1.2, troponin 0.04, D-dimer 500",
        "MR brain and MR angiography, MS exacerbation, Dr on call informed",
        "Parkinson disease, brown sputum, white count normal, 89-year-old, 100.4 F, 98 F",
        "体温38.5℃，血压120/80mmHg，眼压24mmHg，视物模糊1月，咳嗽3天，3年2月前，每日2次",
        "血圧120/80、体温38.5度、眼圧24、3日前から、1ヶ月前、89歳、朝1錠",
        "患者住址不详，姓名略，电话未留",
        "insulin 1200 1500 1800 units, fluid 2000 mL, 400 000 IU, ICD I10, J45.909, H40.11",
    ],
)
def test_clinical_text_stays_as_it_is(text):
    assert scrub(text) == text


@given(st.data())
def test_clinical_numbers_stay_whatever_they_are(data):
    number = st.one_of(st.integers(1, 9999).map(str), st.decimals(0, 400, places=1).map(str))
    templates = [
        "BP {a}/{b} mmHg", "glucose {x} mmol/L", "take {x} mg", "{a}-{b} days", "眼压{x}mmHg", "血圧{a}/{b}",
        "WBC {x}, Hb {y}", "dose {x}/{y}/{z} mg", "{a} x {b} cm", "体温{x}℃",
    ]  # fmt: skip
    text = "; ".join(
        template.format(
            a=data.draw(st.integers(1, 299)),
            b=data.draw(st.integers(1, 199)),
            x=data.draw(number),
            y=data.draw(number),
            z=data.draw(number),
        )
        for template in data.draw(st.lists(st.sampled_from(templates), min_size=1, max_size=6))
    )
    assert scrub(text) == text


def test_names_given_in_fields_are_found_whole_and_in_parts():
    text = "JANE DOE-SMITH came. Ms. Doe-Smith and brown sputum; Brown called. Jane felt well. Janet stays."
    assert scrub(text, "Jane Doe-Smith", "Dr Peter Brown") == (
        "[NAME] came. Ms. [NAME] and brown sputum; [NAME] called. [NAME] felt well. Janet stays."
    )
    assert scrub("张三来诊，张先生诉咳嗽，三天", "张三") == "[NAME]来诊，[NAME]先生诉咳嗽，三天"
    assert scrub("山田太郎さん。山田様。太田さん", "山田 太郎") == "[NAME]さん。[NAME]様。太田さん"


def test_numbers_given_in_fields_are_removed_but_short_ones_could_be_values_and_stay():
    assert scrub("No. X-77812 and 12080; BP 120/80, 45", "X-77812", "12080", "45", "120") == (
        "No. [ID] and [ID]; BP 120/80, 45"
    )
    assert scrub("value 112080.5 and 12080", "12080") == "value 112080.5 and [ID]"


MONTHS = [names[0] for names in month_names()]
SHORT = [names[1] for names in month_names()]
WAYS = {
    "iso": lambda d: d.isoformat(),
    "slashes": lambda d: f"{d.year}/{d.month}/{d.day}",
    "american": lambda d: f"{d.month:02d}/{d.day:02d}/{d.year}",
    "short_american": lambda d: f"{d.month}/{d.day}/{d.year % 100:02d}",
    "compact": lambda d: f"{d.year}{d.month:02d}{d.day:02d}",
    "long": lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
    "short": lambda d: f"{d.day} {MONTHS[d.month - 1][:3]} {d.year}",
    "dashed": lambda d: f"{d.day:02d}-{MONTHS[d.month - 1][:3]}-{d.year}",
    "chinese": lambda d: f"{d.year}年{d.month}月{d.day}日",
    "full_width": lambda d: f"{d.year}年{d.month:02d}月{d.day:02d}日".translate(
        {48 + n: 0xFF10 + n for n in range(10)}
    ),
    "reiwa": lambda d: f"令和{d.year - 2018}年{d.month}月{d.day}日",
    "era_letter": lambda d: f"R{d.year - 2018}.{d.month}.{d.day}",
}


def read_back(text):
    if match := re.fullmatch(r"([A-Z][a-z]+) (\d+), (\d{4})", text):
        return dt.date(int(match[3]), SHORT.index(match[1][:3]) + 1, int(match[2]))
    if match := re.fullmatch(r"(\d+)[ -]([A-Z][a-z]{2})[ -](\d{4})", text):
        return dt.date(int(match[3]), SHORT.index(match[2]) + 1, int(match[1]))
    if match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d\d)", text):
        return dt.date(2000 + int(match[3]), int(match[1]), int(match[2]))
    return parse_date(text)


@given(
    st.dates(dt.date(2020, 6, 1), dt.date(2060, 12, 31)),
    st.dates(dt.date(2020, 6, 1), dt.date(2060, 12, 31)),
    st.sampled_from(sorted(WAYS)),
    st.sampled_from(sorted(WAYS)),
    st.text("abc123", min_size=1, max_size=5),
)
@settings(max_examples=400)
def test_dates_move_and_the_days_between_them_stay(first, second, way, other, patient):
    scrubber = Scrubber(KEY)
    text = f"seen {WAYS[way](first)} ; again {WAYS[other](second)} ."
    moved, report = scrubber.scrub_text(text, patient_id=patient)
    match = re.fullmatch(r"seen (.*) ; again (.*) \.", moved)
    new_first, new_second = read_back(match[1]), read_back(match[2])
    shift = scrubber.shift_of(patient)
    assert (new_first - first, new_second - second) == (shift, shift)
    assert dt.timedelta(days=-365) <= shift <= dt.timedelta(days=-1)
    assert report.counts == {"date": 2}


@pytest.mark.parametrize(
    "text",
    ["on Feb 3", "the 3rd of February", "2月3日再診", "in February 2024", "2024年2月就诊",
     "二〇二四年二月三日", "平成30年4月1日", "H30.4.1", "13/02/2024", "2024-02-03T10:15:00Z", "SEPT 3, 2023"],
)  # fmt: skip
def test_further_ways_of_writing_dates_are_moved(text):
    moved, report = Scrubber(KEY).scrub_text(text, patient_id="p1")
    assert report.counts == {"date": 1}
    assert moved != text


def test_a_day_first_text_keeps_that_order_throughout():
    scrubber = Scrubber(KEY)
    moved = scrubber.scrub_text("first 31/01/2024, then 03/04/2024", patient_id="p")[0]
    first, second = re.findall(r"\d\d/\d\d/\d{4}", moved)
    assert parse_date(second, day_first=True) - parse_date(first, day_first=True) == dt.timedelta(days=63)


def record(**more):
    return OutpatientRecord(
        **{
            "id": "visit-7",
            "patient_id": "P0012345",
            "date": "2024-01-31",
            "age": 93,
            "text": "Jane Doe (P0012345), 93 years old, seen 2024-01-31, fell 2024-01-29. BP 120/80.",
            "views": {"history": "Jane fell on 2024-01-29."},
            "diagnoses": [{"name": "Fracture", "code": "S72.0"}],
            "identifiers": ["Jane Doe"],
            **more,
        }
    )


def test_a_record_is_scrubbed_in_all_its_parts_and_the_given_one_stays():
    given_record = record()
    scrubber = Scrubber(KEY)
    scrubbed, report = scrubber.scrub(given_record)
    shift = scrubber.shift_of("P0012345")
    day, before = dt.date(2024, 1, 31) + shift, dt.date(2024, 1, 29) + shift
    assert scrubbed.text == f"[NAME] ([ID]), 90 years old, seen {day}, fell {before}. BP 120/80."
    assert scrubbed.views == {View.HISTORY: f"[NAME] fell on {before}."}
    assert (scrubbed.date, scrubbed.age, scrubbed.identifiers, scrubbed.id) == (day, 90, [], "visit-7")
    assert scrubbed.patient_id == scrubber.pseudonym("P0012345")
    assert scrubbed.diagnoses == given_record.diagnoses
    assert given_record == record()
    assert report.counts == {"name": 2, "id": 2, "age": 2, "date": 4}
    assert "no guarantee" in str(report)


def test_a_record_id_that_holds_the_patients_id_gets_a_stable_stand_in():
    scrubber = Scrubber(KEY)
    first = scrubber.scrub(record(id="P0012345-1"))[0].id
    assert "P0012345" not in first
    assert Scrubber(KEY).scrub(record(id="P0012345-1"))[0].id == first
    assert scrubber.scrub(record(id="P0012345-2"))[0].id != first


def test_shifts_depend_on_patient_and_key_and_are_the_same_in_the_next_run():
    patients = [f"p{n}" for n in range(50)]
    shifts = [Scrubber(KEY).shift_of(patient) for patient in patients]
    assert shifts == [Scrubber(KEY).shift_of(patient) for patient in patients]
    assert len(set(shifts)) > 30
    assert shifts != [Scrubber("another").shift_of(patient) for patient in patients]
    assert Scrubber().shift_of("p") != Scrubber().shift_of("p") or Scrubber().shift_of(
        "q"
    ) != Scrubber().shift_of("q")


def test_visits_of_one_patient_keep_their_distance():
    scrubber = Scrubber(KEY)
    first = scrubber.scrub(record(id="a", date="2023-05-01"))[0].date
    second = scrubber.scrub(record(id="b", date="2024-02-29"))[0].date
    assert second - first == dt.date(2024, 2, 29) - dt.date(2023, 5, 1)


@pytest.mark.parametrize("date", ["0001-01-01", "9999-12-31"])
def test_a_date_at_the_end_of_the_calendar_does_no_harm(date):
    scrubbed = Scrubber(KEY).scrub(record(date=date))[0]
    assert scrubbed.date is None or scrubbed.date.year == 9999


def test_reports_add_up():
    scrubber = Scrubber(KEY)
    for number in range(3):
        scrubber.scrub(record(id=f"v{number}"))
    assert (scrubber.report.records, scrubber.report.counts["name"]) == (3, 6)
    assert scrubber.report.total == sum(scrubber.report.counts.values())


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_no_text_makes_it_fail(text):
    scrub(text, text[:20], "张三")


@pytest.mark.parametrize(
    "unit", ["1", "1-", "1 ", "A b ", "12 Main ", "2024/", "北京市", "a@", "+1 ", "Jan 1 ", "Name: A "]
)
def test_long_monotonous_texts_are_no_trap(unit):
    text = unit * (60_000 // len(unit))
    assert isinstance(scrub(text, "Jane Doe", "12345678"), str)


def test_no_one_builds_an_index_without_a_word_on_identification():
    with pytest.raises(
        PrivacyError, match=r"privacy\.deidentified = true.*privacy\.scrub = true.*no guarantee"
    ):
        require_deidentified(PrivacySettings())
    require_deidentified(PrivacySettings(scrub=True))
    assert scrubber_for(PrivacySettings(deidentified=True)) is None
    with pytest.raises(PrivacyError):
        scrubber_for(PrivacySettings())


def test_the_key_of_the_settings_decides_the_shift():
    one, two = (scrubber_for(PrivacySettings(scrub=True, scrub_key=KEY)) for _ in range(2))
    assert one.shift_of("p") == two.shift_of("p") == Scrubber(KEY).shift_of("p")


def test_the_shipped_tables_load_and_each_kind_that_is_removed_has_a_placeholder():
    tables = deid_tables()
    assert {pattern.kind for pattern in tables.patterns} == set(tables.placeholders)
    assert passes("my_number", "123456789018")
    assert not passes("my_number", "123456789012")
