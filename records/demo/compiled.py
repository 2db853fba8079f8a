"""The table made ready for one language: phrases taken apart, lists to draw from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .chance import Wheel
from .knowledge import LANGUAGES, Comorbidity, DemoTable, Disease, Finding, HeadingStyle, Language, Manner
from .templates import Template

NORMAL = "normal"
_EXPECTED = 0.3


@dataclass(frozen=True, slots=True)
class Said:
    """A finding's phrasings in one language.

    Attributes:
        full: as written out.
        brief: as abbreviated.
        absent: noun for its denial, or None.
        site: where it is examined; empty for complaints and history.
        lab: whether it comes from laboratory or imaging.
    """

    full: tuple[Template, ...]
    brief: tuple[Template, ...]
    absent: str | None = None
    site: str = ""
    lab: bool = False


@dataclass(frozen=True, slots=True)
class Ailment:
    """A diagnosis in one language.

    Attributes:
        entry: the table's row.
        names: the commonest first.
        told: keys of its complaints and history items.
        leak: finds any of its names in a text.
        complaint: phrasings with probability, likewise the next two.
        usual: sites where something is expected; they are not called normal.
        denials: nouns that speak for another diagnosis of its group.
    """

    entry: Disease
    names: list[str]
    told: frozenset[str]
    leak: re.Pattern[str]
    complaint: list[tuple[Said, float]]
    history: list[tuple[Said, float]]
    examination: list[tuple[Said, float]]
    usual: frozenset[str]
    denials: list[str]


@dataclass(frozen=True, slots=True)
class Remark:
    """An aside in one language."""

    kind: str
    ages: tuple[float, float]
    sex: str | None
    unless: frozenset[str]
    full: tuple[Template, ...]
    brief: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Clinic:
    """A department in one language.

    Attributes:
        ages: youngest and oldest patient.
        chatter: mean number of asides.
        listens: factor on the probability of history items.
        sees: factor on the probability of findings.
        beyond: sites that are not examined here.
        routine: what is written of a site where nothing is wrong, with the probability that it is.
        complaints: what else a patient of this department may mention.
    """

    ages: tuple[float, float]
    chatter: float
    listens: float
    sees: float
    beyond: frozenset[str]
    routine: list[tuple[Said, float]]
    complaints: Wheel[Said]


@dataclass(frozen=True, slots=True)
class Book:
    """All of one language."""

    language: Language
    manner: Manner
    ailments: list[Ailment]
    clinics: dict[str, Clinic]
    remarks: list[Remark]
    comorbid: list[tuple[Comorbidity, tuple[Template, ...], tuple[Template, ...], re.Pattern[str]]]
    headings: list[HeadingStyle]
    slips: list[tuple[str, str]] = field(default_factory=list)


class Abbreviator:
    """Replaces words by abbreviations, longest first; whole words in English.

    Args:
        table: words -> abbreviations.
        language: of the words.
    """

    def __init__(self, table: dict[str, str], language: Language) -> None:
        self._table = table
        words = "|".join(re.escape(w) for w in sorted(table, key=len, reverse=True))
        self._pattern = re.compile(rf"\b(?:{words})\b" if language == "en" else words or r"(?!)")

    def __call__(self, text: str) -> str:
        """The text in short."""
        return self._pattern.sub(lambda m: self._table[m.group()], text)


def name_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of these names in a text.

    Latin names are whole words; the case counts in an abbreviation, or ``MG`` would be found in ``5 mg``.
    """
    return re.compile("|".join(_name(n) for n in sorted(names, key=lambda n: (-len(n), n))))


def _name(name: str) -> str:
    literal = re.escape(name) if name.isupper() else f"(?i:{re.escape(name)})"
    before = r"(?<![A-Za-z0-9])" if name[0].isascii() else ""
    after = r"(?![A-Za-z0-9])" if name[-1].isascii() else ""
    return f"{before}{literal}{after}"


class Compiler:
    """Makes the books of a table.

    Args:
        table: checked already.
    """

    def __init__(self, table: DemoTable) -> None:
        self._table = table

    def book(self, language: Language) -> Book:
        """The table in one language."""
        common = self._table.common
        manner = common.manner[language]
        shorten = Abbreviator(manner.brief, language)

        def pair(phrases: list[str]) -> tuple[tuple[Template, ...], tuple[Template, ...]]:
            full = tuple(Template(p, language) for p in phrases)
            return full, tuple(Template(shorten(p), language, brief=True) for p in phrases)

        def said(finding: Finding, site: str = "", *, lab: bool = False) -> Said:
            full, brief = pair(finding.of(language))
            absent = finding.no[LANGUAGES.index(language)] if finding.no else None
            return Said(full, brief, absent, site, lab)

        complaint: dict[str, Said] = {}
        history: dict[str, Said] = {}
        examination: dict[str, Said] = {}
        normal: dict[str, Said] = {}
        for part in self._table.departments:
            complaint.update({k: said(f) for k, f in part.complaint.items()})
            history.update({k: said(f) for k, f in part.history.items()})
            for lab, sites in ((False, part.examination), (True, part.lab)):
                for site, findings in sites.items():
                    for key, finding in findings.items():
                        (normal if key == NORMAL else examination)[site if key == NORMAL else key] = said(
                            finding, site, lab=lab
                        )
        diseases = [d for part in self._table.departments for d in part.diagnosis]
        clinics = {
            part.department: Clinic(
                part.ages,
                part.chatter,
                part.listens,
                part.sees,
                frozenset(part.beyond),
                [(normal[site], p) for site, p in part.routine.items() if site in normal],
                Wheel(
                    (complaint[key], p * d.departments[part.department])
                    for d in diseases
                    if part.department in d.departments
                    for key, p in d.complaint.items()
                ),
            )
            for part in self._table.departments
            if part.department
        }
        return Book(
            language=language,
            manner=manner,
            ailments=[
                Ailment(
                    d,
                    d.of(language),
                    frozenset(d.complaint | d.history),
                    name_pattern(d.of(language)),
                    [(complaint[k], p) for k, p in d.complaint.items()],
                    [(history[k], p) for k, p in d.history.items()],
                    [(examination[k], p) for k, p in d.examination.items()],
                    frozenset(examination[k].site for k, p in d.examination.items() if p >= _EXPECTED),
                    self._denials(d, diseases, complaint | history),
                )
                for d in diseases
            ],
            clinics=clinics,
            remarks=[
                Remark(a.kind, a.ages, a.sex, frozenset(a.unless), *pair(a.of(language)))
                for a in common.aside
            ],
            comorbid=[
                (c, *pair(c.of(language)), name_pattern([c.name[LANGUAGES.index(language)]]))
                for c in common.comorbidity
            ],
            headings=[h for h in common.heading if h.language == language],
            slips=list(manner.typos.items()),
        )

    @staticmethod
    def _denials(disease: Disease, diseases: list[Disease], said: dict[str, Said]) -> list[str]:
        own = disease.complaint | disease.history
        others = {
            key: None
            for d in diseases
            if d.group == disease.group
            for key in (*d.complaint, *d.history)
            if own.get(key, 0) < 0.5
        }
        return list(dict.fromkeys(noun for key in others if (noun := said[key].absent)))
