"""A case index as learning reads it: who, in which department, with which label. Source: ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from .demographics import demographics_of, normalise_sex
from .departments import normalise_department
from .labels import LabelMode, LabelSpace
from .source import CaseSource

SEX_NUMBERS = {"F": 1, "M": 2}


@dataclass(frozen=True)
class Patient:
    """Who a case is about, as far as its fields or its text say.

    Attributes:
        department: canonical name, or None.
        age: years, NaN where unknown.
        sex: ``"F"``, ``"M"`` or None.
    """

    department: str | None
    age: float
    sex: str | None

    @classmethod
    def of(cls, text: str, department: str | None, age: float | None, sex: str | None) -> Self:
        """From the fields, and from the text for what they leave open."""
        years, who = demographics_of(text, age, sex)
        return cls(normalise_department(department), years, who)


class CaseTable:
    """Labels grouped by :class:`LabelSpace`, canonical departments, and patients filled in from texts.

    Args:
        index: an open case index.
        mode: label equality.
        read_texts: fill in age and sex from the texts where the fields leave them open.
    """

    def __init__(
        self, index: CaseSource, mode: LabelMode | str = LabelMode.AUTO, *, read_texts: bool = True
    ) -> None:
        self.index = index
        written = list(zip(index.label_names, index.label_codes, strict=True))
        used = np.unique(index.labels[index.labels >= 0])
        self.space = LabelSpace.of((written[i] for i in used.tolist()), mode)
        self.label_of_written = self.space.numbers(written) if written else np.zeros(0, np.int32)
        self.labels = np.full(len(index), -1, np.int32)
        known = index.labels >= 0
        self.labels[known] = self.label_of_written[np.asarray(index.labels)[known]]
        canonical = [normalise_department(name) for name in index.department_names]
        self.department_names = sorted({name for name in canonical if name})
        number = {name: i for i, name in enumerate(self.department_names)}
        of_written = np.array([number[name] if name else -1 for name in canonical] + [-1], np.int32)
        self.departments = of_written[np.asarray(index.departments)]
        sexes = np.array(
            [SEX_NUMBERS.get(normalise_sex(name) or "", 0) for name in index.sex_names] + [0], np.int32
        )
        self.sexes = sexes[np.asarray(index.sexes)]
        self.ages = np.array(index.ages, np.float32)
        if read_texts:
            self._read_patients()

    def _read_patients(self) -> None:
        index = self.index
        for row in np.flatnonzero(np.isnan(self.ages) | (self.sexes == 0)).tolist():
            years, sex = demographics_of(index.payload(row).text)
            if math.isnan(self.ages[row]):
                self.ages[row] = years
            if not self.sexes[row]:
                self.sexes[row] = SEX_NUMBERS.get(sex or "", 0)

    def codes(self) -> list[str | None]:
        """For each label the commonest code that the records give it."""
        votes: list[dict[str, int]] = [{} for _ in self.space.keys]
        counts = np.bincount(
            np.asarray(self.index.labels)[self.index.labels >= 0], minlength=len(self.label_of_written)
        )
        for label, code, count in zip(self.label_of_written, self.index.label_codes, counts, strict=True):
            if code and label >= 0 and count:
                votes[label][code] = votes[label].get(code, 0) + int(count)
        return [min(vote, key=lambda code: (-vote[code], code)) if vote else None for vote in votes]
