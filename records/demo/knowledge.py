"""The hand-written table behind the demo records: what a clinician may read and change."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Language = Literal["en", "zh", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "zh", "ja")

_DURATION = re.compile(r"(\d+)([hdwmy])\.\.(\d+)([hdwmy])")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


def _duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        msg = f"{text!r} is not a duration like 3h..2d (h, d, w, m, y)"
        raise ValueError(msg)
    return text


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Probability = Annotated[float, Field(gt=0, le=1)]
Phrases = Annotated[list[str], Field(min_length=1)]


class Wordings(_Entry):
    """The same thing said in three languages, each in several ways."""

    en: Phrases
    zh: Phrases
    ja: Phrases

    def of(self, language: Language) -> list[str]:
        """The phrasings in one language."""
        phrases: list[str] = getattr(self, language)
        return phrases


class Finding(Wordings):
    """A complaint, a history item, or an examination or laboratory finding.

    Attributes:
        no: the noun by which its absence is stated (en, zh, ja); where None it is never denied.
    """

    no: tuple[str, str, str] | None = None


class Disease(Wordings):
    """A diagnosis; the phrasings are its names, the commonest first.

    Attributes:
        code: ICD-10-CM.
        departments: how often each department sees it, relative to its other diagnoses.
        age: years: youngest, commonest, oldest.
        female: share of women.
        duration: of the complaint when the patient comes, shortest..longest.
        group: diagnoses that are confused with each other; what speaks for one is denied in the others.
        complaint: finding -> probability.
        history: finding -> probability.
        examination: finding -> probability, laboratory included.
    """

    code: str = Field(pattern=r"^[A-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?$")
    departments: dict[str, Annotated[float, Field(gt=0)]] = Field(min_length=1)
    age: tuple[float, float, float]
    female: float = Field(ge=0, le=1)
    duration: Annotated[str, AfterValidator(_duration)]
    group: str
    complaint: dict[str, Probability] = Field(min_length=1)
    history: dict[str, Probability] = Field(min_length=1)
    examination: dict[str, Probability] = Field(min_length=1)

    @model_validator(mode="after")
    def _ages_in_order(self) -> Self:
        if not 0 <= self.age[0] <= self.age[1] <= self.age[2] <= 105:
            msg = f"age {self.age} must be youngest <= commonest <= oldest, within 0..105"
            raise ValueError(msg)
        return self

    @property
    def hours(self) -> tuple[float, float]:
        """Shortest and longest duration in hours."""
        found = _DURATION.fullmatch(self.duration)
        assert found is not None  # noqa: S101  # validated above
        low, low_unit, high, high_unit = found.groups()
        return int(low) * _HOURS[low_unit], int(high) * _HOURS[high_unit]


class DepartmentTable(_Entry):
    """One department's file.

    Attributes:
        department: its name, as in the records.
        share: of all visits.
        ages: youngest and oldest patient it sees.
        chatter: mean number of sentences in a history that have nothing to do with the diagnosis.
        listens: factor on the probability that a history item comes out; a short history is below 1.
        sees: factor on the probability that a finding is found.
        beyond: sites that it cannot examine itself.
        routine: site -> probability that it is examined though nothing is wrong there.
        complaint: findings the patient names first.
        history: findings that the history taking brings out.
        examination: site -> findings; ``normal`` is what is written when nothing is wrong there.
        lab: the same for laboratory and imaging.
        diagnosis: the department's diagnoses.
    """

    department: str | None = None
    share: float = Field(default=0, ge=0)
    ages: tuple[float, float] = (0, 105)
    chatter: float = Field(default=1, ge=0)
    listens: float = Field(default=1, gt=0, le=2)
    sees: float = Field(default=1, gt=0, le=2)
    beyond: list[str] = Field(default_factory=list)
    routine: dict[str, Probability] = Field(default_factory=dict)
    complaint: dict[str, Finding] = Field(default_factory=dict)
    history: dict[str, Finding] = Field(default_factory=dict)
    examination: dict[str, dict[str, Finding]] = Field(default_factory=dict)
    lab: dict[str, dict[str, Finding]] = Field(default_factory=dict)
    diagnosis: list[Disease] = Field(default_factory=list)


class Aside(Wordings):
    """A sentence that tells nothing about the diagnosis.

    Attributes:
        kind: where it belongs; ``past`` goes under past history, where a record has that heading.
        ages: youngest and oldest it fits.
        sex: whom it fits; anybody where None.
        unless: complaints and history items it would contradict; it is left out where the diagnosis has one.
    """

    kind: Literal["past", "social", "talk"]
    ages: tuple[float, float] = (0, 105)
    sex: Literal["F", "M"] | None = None
    unless: list[str] = Field(default_factory=list)


class Comorbidity(Wordings):
    """Another illness: the phrasings tell it by its treatment, ``name`` is for the diagnosis list.

    Attributes:
        code: ICD-10-CM.
        name: en, zh, ja.
        ages: youngest and oldest.
        weight: how often, relative to the others.
    """

    code: str
    name: tuple[str, str, str]
    ages: tuple[float, float]
    sex: Literal["F", "M"] | None = None
    weight: float = Field(gt=0)


class HeadingStyle(_Entry):
    """One way of heading a record; an omitted heading's text goes under the one before it."""

    language: Language
    form: str = Field(pattern=r"\{heading\}.*\{text\}|\{heading\}\n\{text\}")
    between: str = "\n"
    complaint: str
    history: str
    past: str | None = None
    examination: str
    lab: str | None = None
    diagnosis: str


class Manner(_Entry):
    """How one language writes a record.

    Attributes:
        units: singular and plural of hour, day, week, month, year, and their short form.
        complaint: sentence of the complaint, with ``{c}`` and ``{d}``.
        opener: first sentence of a wordy record, with ``{age}``, ``{person}``, ``{c}`` and ``{d}``.
        persons: girl, boy, woman, man.
        also: a further complaint, with ``{c}``.
        deny: ``{x}`` is what the patient denies.
        lead: beginnings of a wordy sentence.
        examined: beginning of the examination in a record without headings.
        tested: beginning of the laboratory findings.
        join: between complaints, and before the last.
        stop: end of a sentence.
        brief_join: between the items of a terse record.
        space: between sentences.
        brief: words -> abbreviations.
        typos: words -> slips; for English, letters are swapped instead.
    """

    units: list[tuple[str, str, str]] = Field(min_length=5, max_length=5)
    complaint: Phrases
    brief_complaint: Phrases
    opener: Phrases
    persons: tuple[str, str, str, str]
    also: Phrases
    deny: Phrases
    lead: Phrases
    examined: Phrases
    tested: Phrases
    join: tuple[str, str]
    deny_join: tuple[str, str]
    stop: str
    brief_join: str
    space: str
    brief: dict[str, str]
    typos: dict[str, str]


class CommonTable(_Entry):
    """What all departments share."""

    manner: dict[Language, Manner]
    heading: list[HeadingStyle]
    aside: list[Aside]
    comorbidity: list[Comorbidity]


class DemoTable(_Entry):
    """Everything: the shared part and the departments' files."""

    common: CommonTable
    departments: list[DepartmentTable]
