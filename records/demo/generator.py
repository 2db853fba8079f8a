"""Draws a case from the table: who comes, with what, how ill, and what is found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..schema import Diagnosis, OutpatientRecord, View
from .chance import Chance, Wheel
from .compiled import Ailment, Book, Compiler, Said
from .knowledge import LANGUAGES, Comorbidity, DemoTable, Language
from .loading import shipped_table
from .writing import Writer

SEED = 20240229
_SHARE = {"en": 0.4, "zh": 0.35, "ja": 0.25}
_FIRST_DAY = dt.date(2022, 1, 3)
_DAYS = 900
_VIEWS_FORM, _HEADED = 0.12, 0.68
_ATYPICAL, _BESIDES, _COMORBID = 0.15, 0.22, 0.45


@dataclass(slots=True)
class Case:
    """One visit before it is written down.

    Attributes:
        ailment: what the patient has.
        department: that the patient visits.
        age: years.
        sex: ``"F"`` or ``"M"``.
        hours: how long it has been going on.
        severity: 0..1.
        side: 0 right, 1 left.
        complaint: what the patient says first.
        further: complaints that come out later.
        history: history items.
        examination: findings, laboratory included.
        comorbid: other illnesses.
    """

    ailment: Ailment
    department: str
    age: float
    sex: str
    hours: float
    severity: float
    side: int
    complaint: list[Said]
    further: list[Said]
    history: list[Said]
    examination: list[Said]
    comorbid: list[int]


class _Clinic:
    """Draws cases."""

    def __init__(self, table: DemoTable) -> None:
        compiler = Compiler(table)
        self.books: dict[Language, Book] = {language: compiler.book(language) for language in LANGUAGES}
        diseases = [d for part in table.departments for d in part.diagnosis]
        self._visits = Wheel(
            ((at, part.department), part.share * d.departments[part.department] / total)
            for part in table.departments
            if part.department
            for total in (sum(d.departments.get(part.department, 0) for d in diseases),)
            for at, d in enumerate(diseases)
            if part.department in d.departments
        )
        self._comorbid = Wheel((i, c.weight) for i, c in enumerate(table.common.comorbidity))

    def case(self, chance: Chance, book: Book) -> Case:
        at, department = self._visits.draw(chance)
        ailment = book.ailments[at]
        entry = ailment.entry
        clinic = book.clinics[department]
        youngest, oldest = clinic.ages
        low, mode, high = (min(max(a, youngest), oldest) for a in entry.age)
        age = chance.triangular(low, mode, high)
        age = round(age, 1) if age < 2 else float(int(age))
        sex = "F" if chance.happens(entry.female) else "M"
        severity = chance.triangular(0, 0.4, 1)
        shortest, longest = entry.hours
        hours = shortest * (longest / shortest) ** chance.uniform()
        weight = (0.7 + 0.6 * severity) * (0.6 if chance.happens(_ATYPICAL) else 1.0)
        complaints = _by_weight(chance, ailment.complaint, weight)
        first = 1 + chance.happens(0.45)
        further = complaints[first:]
        if chance.happens(_BESIDES):
            besides = clinic.complaints.draw(chance)
            if besides not in complaints:
                further.append(besides)
        found = _drawn(chance, ailment.examination, weight * clinic.sees)
        return Case(
            ailment=ailment,
            department=department,
            age=age,
            sex=sex,
            hours=hours,
            severity=severity,
            side=chance.below(2),
            complaint=complaints[:first],
            further=further,
            history=_drawn(chance, ailment.history, weight * clinic.listens),
            examination=[s for s in found if s.site not in clinic.beyond],
            comorbid=self._others(chance, book, ailment, age, sex),
        )

    def _others(self, chance: Chance, book: Book, ailment: Ailment, age: float, sex: str) -> list[int]:
        found: list[int] = []
        while len(found) < 3 and chance.happens(_COMORBID):
            i = self._comorbid.draw(chance)
            other: Comorbidity = book.comorbid[i][0]
            fits = other.ages[0] <= age <= other.ages[1] and other.sex in (None, sex)
            if fits and i not in found and other.code[:3] != ailment.entry.code[:3]:
                found.append(i)
        return found


def _drawn(chance: Chance, findings: list[tuple[Said, float]], weight: float) -> list[Said]:
    uniform = chance.uniform
    return [said for said, p in findings if uniform() < min(p * weight, 0.97)]


def _by_weight(chance: Chance, complaints: list[tuple[Said, float]], weight: float) -> list[Said]:
    """At least one; the commoner a complaint is, the sooner the patient names it."""
    uniform = chance.uniform
    drawn = [(uniform() ** (1 / p), said) for said, p in complaints if uniform() < min(p * weight, 0.97)]
    if not drawn:
        return [max(complaints, key=lambda pair: pair[1])[0]]
    return [said for _, said in sorted(drawn, key=lambda pair: -pair[0])]


@lru_cache(maxsize=1)
def _shipped_clinic() -> _Clinic:
    return _Clinic(shipped_table())


def generate_records(
    n: int,
    seed: int = SEED,
    languages: Sequence[Language] = LANGUAGES,
    headed: bool | None = None,
    *,
    table: DemoTable | None = None,
) -> Iterator[OutpatientRecord]:
    """Make synthetic outpatient records, one at a time; ours, from a hand-written table, no patient in it.

    The same arguments give the same records on every machine and Python, and fewer records are the beginning
    of more.

    Args:
        n: how many.
        seed: another one gives other records of the same kind.
        languages: drawn from in the proportion en 8, zh 7, ja 5.
        headed: True: every record is text under headings; False: text without headings; None: a mixture of
            both, and of records that are split into views already.
        table: what is known of diseases; the shipped one where None.

    Yields:
        Records with id, department, date, age, sex, language, and diagnoses, the main one first, all coded.

    Raises:
        ValueError: no language, or one that is not en, zh or ja.
        InputError: the table cannot be read.
    """
    if not languages or set(languages) - set(LANGUAGES):
        msg = f"languages {list(languages)} must be some of {list(LANGUAGES)}"
        raise ValueError(msg)
    clinic = _shipped_clinic() if table is None else _Clinic(table)
    writers = {language: Writer(clinic.books[language]) for language in languages}
    tongues: Wheel[Language] = Wheel(
        (language, _SHARE[language]) for language in LANGUAGES if language in writers
    )
    chance = Chance(seed)
    for number in range(1, n + 1):
        language = tongues.draw(chance)
        case = clinic.case(chance, clinic.books[language])
        date = _FIRST_DAY + dt.timedelta(days=chance.below(_DAYS))
        writer = writers[language]
        written = writer.write(chance, case)
        diagnoses = writer.diagnoses(chance, case)
        text: str | None = None
        views: dict[View, str] | None = None
        if headed is None and chance.happens(_VIEWS_FORM):
            views = written.views()
        elif chance.happens(_HEADED) if headed is None else headed:
            text = writer.headed(chance, written, diagnoses)
        else:
            text = writer.running(chance, written)
        yield OutpatientRecord(
            id=f"demo-{number:06d}",
            department=case.department,
            date=date,
            age=case.age,
            sex=case.sex,
            language=language,
            text=text,
            views=views,
            diagnoses=[Diagnosis(name=name, code=code) for name, code in diagnoses],
        )
