"""Writes a drawn case down, as tersely or wordily as doctors do, in one language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..schema import View
from .chance import Chance
from .compiled import Book, Remark, Said
from .knowledge import LANGUAGES

if TYPE_CHECKING:
    from .generator import Case

_BRIEF, _WORDY = 0.35, 0.3
_MISSING = {"complaint": 0.05, "history": 0.07, "examination": 0.08}
_TYPO = 0.2
_OLD_NAME, _DOUBTFUL, _UNNAMED, _SECOND = 0.35, 0.08, 0.2, 0.3
_DOUBT = {
    "en": ("?{}", "Suspected {}", "{}?"),
    "zh": ("{}？", "{}待查", "考虑{}"),
    "ja": ("{}疑い", "{}の疑い"),
}
_UNITS = ((36, 1), (24 * 21, 24), (24 * 70, 168), (24 * 730, 730), (float("inf"), 8766))


@dataclass(slots=True)
class Written:
    """A case in sentences, by section; a section may be empty, not all of them."""

    complaint: str
    history: str
    past: str
    examination: str
    lab: str
    space: str

    def views(self) -> dict[View, str]:
        """The three separate views."""
        parts = {
            View.CHIEF_COMPLAINT: self.complaint,
            View.HISTORY: self._both(self.history, self.past),
            View.EXAMINATION: self._both(self.examination, self.lab),
        }
        return {view: text for view, text in parts.items() if text}

    def _both(self, first: str, second: str) -> str:
        return f"{first}{self.space}{second}" if first and second else first or second


class Writer:
    """Writes cases in one language.

    Args:
        book: of the language.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._manner = book.manner
        self._english = book.language == "en"
        self._at = LANGUAGES.index(book.language)

    def write(self, chance: Chance, case: Case) -> Written:
        """The case in sentences; no name of its diagnoses is in them."""
        u = chance.uniform()
        brief, wordy = u < _BRIEF, u > 1 - _WORDY
        heard, past = self._told(chance, case, brief=brief, wordy=wordy)
        seen, tested = self._seen(chance, case, brief=brief)
        complaint = self._complaint(chance, case, brief=brief, wordy=wordy)
        gone = {key for key, p in _MISSING.items() if chance.happens(p)}
        if "history" in gone:
            heard, past = [], []
        if "examination" in gone:
            seen, tested = [], []
        kept = "" if "complaint" in gone and (heard or seen) else complaint
        sections = [[kept] if kept else [], heard, past, seen, tested]
        self._slip(chance, sections)
        patterns = [case.ailment.leak, *(self._book.comorbid[i][3] for i in case.comorbid)]
        for at, sentences in enumerate(sections):
            sections[at] = [s for s in sentences if not any(p.search(s) for p in patterns)]
        if not any(sections):
            sections[0] = [complaint]
        told, history, before, found, results = (self._joined(part, brief=brief) for part in sections)
        return Written(told, history, before, found, results, self._manner.space)

    def diagnoses(self, chance: Chance, case: Case) -> list[tuple[str, str]]:
        """Names and codes, the main one first; the name may be one of several."""
        names = case.ailment.names
        name = chance.pick(names) if chance.happens(_OLD_NAME) else names[0]
        others = [self._book.comorbid[i][0] for i in case.comorbid if chance.happens(_SECOND)]
        return [(name, case.ailment.entry.code), *((c.name[self._at], c.code) for c in others)]

    def headed(self, chance: Chance, written: Written, diagnoses: list[tuple[str, str]]) -> str:
        """The record under one style of headings; the diagnosis, where stated, under its own."""
        style = chance.pick(self._book.headings)
        history, past, examination, lab = written.history, written.past, written.examination, written.lab
        views = written.views()
        if style.past is None:
            history, past = views.get(View.HISTORY, ""), ""
        if style.lab is None:
            examination, lab = views.get(View.EXAMINATION, ""), ""
        names = [name for name, _ in diagnoses]
        if chance.happens(_DOUBTFUL):
            names[0] = chance.pick(_DOUBT[self._book.language]).format(names[0])
        stated = "" if chance.happens(_UNNAMED) else ("; " if self._english else "；").join(names)
        sections = (
            (style.complaint, written.complaint), (style.history, history), (style.past, past),
            (style.examination, examination), (style.lab, lab), (style.diagnosis, stated),
        )  # fmt: skip
        return style.between.join(
            style.form.replace("{heading}", heading).replace("{text}", text)
            for heading, text in sections
            if heading and text
        )

    def running(self, chance: Chance, written: Written) -> str:
        """The record without headings and without its diagnosis."""
        told = [t for t in (written.complaint, written.history, written.past) if t]
        seen = []
        if written.examination:
            seen.append(chance.pick(self._manner.examined).replace("{x}", self._lowered(written.examination)))
        if written.lab:
            seen.append(chance.pick(self._manner.tested).replace("{x}", self._lowered(written.lab)))
        parts = [*seen, *told] if chance.happens(0.08) else [*told, *seen]
        return self._manner.space.join(parts)

    def _say(self, chance: Chance, case: Case, said: Said | Remark, *, brief: bool) -> str:
        templates = said.brief if brief else said.full
        return chance.pick(templates).fill(chance, case.side, case.severity)

    def _complaint(self, chance: Chance, case: Case, *, brief: bool, wordy: bool) -> str:
        manner = self._manner
        named = [self._say(chance, case, c, brief=brief) for c in case.complaint]
        last = manner.join[1] if len(named) > 1 else ""
        phrase = manner.join[0].join(named[:-1]) + last + named[-1]
        frame = chance.pick(manner.brief_complaint if brief else manner.complaint)
        if wordy and case.age >= 2:
            frame = chance.pick(manner.opener)
            person = manner.persons[2 * (case.age >= 16) + (case.sex == "M")]
            frame = frame.replace("{age}", f"{case.age:.0f}").replace("{person}", person)
        lasting = self._duration(case.hours, brief=brief)
        return self._raised(frame.replace("{c}", phrase).replace("{d}", lasting))

    def _duration(self, hours: float, *, brief: bool) -> str:
        unit, size = next((i, size) for i, (limit, size) in enumerate(_UNITS) if hours < limit)
        number = max(1, round(hours / size))
        one, many, short = self._manner.units[unit]
        if brief:
            return f"{number}{short}"
        return f"{number}{' ' if self._english else ''}{one if number == 1 else many}"

    def _told(self, chance: Chance, case: Case, *, brief: bool, wordy: bool) -> tuple[list[str], list[str]]:
        manner = self._manner
        told = [self._raised(self._say(chance, case, h, brief=brief)) for h in case.history]
        if wordy:
            told = [self._led(chance, sentence) if chance.happens(0.3) else sentence for sentence in told]
        for said in case.further:
            also = chance.pick(manner.also).replace("{c}", self._say(chance, case, said, brief=brief))
            told.append(self._raised(also))
        if denial := self._denial(chance, case, told):
            told.append(denial)
        past = []
        for i in case.comorbid:
            _, full, short, _ = self._book.comorbid[i]
            past.append(self._raised(chance.pick(short if brief else full).fill(chance, case.side, 0.5)))
        mean = self._book.clinics[case.department].chatter * (0.5 if brief else 1.6 if wordy else 1.0)
        for remark in self._remarks(chance, case, mean):
            sentence = self._raised(self._say(chance, case, remark, brief=brief))
            (told if remark.kind == "talk" else past).append(sentence)
        if chance.happens(0.7):
            told = chance.shuffled(told)
        return told, chance.shuffled(past)

    def _denial(self, chance: Chance, case: Case, told: Sequence[str]) -> str:
        count = chance.below(4)
        nouns = case.ailment.denials
        if not count or not nouns:
            return ""
        spoken = " ".join(told).lower() + " ".join(
            t.text.lower() for said in (*case.complaint, *case.further, *case.history) for t in said.full
        )
        present = {s.absent for s in (*case.complaint, *case.further, *case.history)}
        drawn = {chance.pick(nouns): None for _ in range(count)}
        denied = [n for n in drawn if n not in present and n.lower() not in spoken]
        if not denied:
            return ""
        manner = self._manner
        last = manner.deny_join[1] if len(denied) > 1 else ""
        listed = manner.deny_join[0].join(denied[:-1]) + last + denied[-1]
        return self._raised(chance.pick(manner.deny).replace("{x}", listed))

    def _remarks(self, chance: Chance, case: Case, mean: float) -> list[Remark]:
        count = int(mean * 2 * chance.uniform() + 0.5)
        drawn: list[Remark] = []
        for _ in range(count):
            remark = chance.pick(self._book.remarks)
            fits = remark.ages[0] <= case.age <= remark.ages[1] and remark.sex in (None, case.sex)
            said = remark.unless and not remark.unless.isdisjoint(case.ailment.told)
            if fits and not said and remark not in drawn:
                drawn.append(remark)
        return drawn

    def _seen(self, chance: Chance, case: Case, *, brief: bool) -> tuple[list[str], list[str]]:
        abnormal = {said.site for said in case.examination} | case.ailment.usual
        routine = self._book.clinics[case.department].routine
        found = list(case.examination)
        found += [s for s, p in routine if s.site not in abnormal and chance.happens(p)]
        seen: list[str] = []
        tested: list[str] = []
        for said in chance.shuffled(found):
            sentence = self._raised(self._say(chance, case, said, brief=brief))
            (tested if said.lab else seen).append(sentence)
        return seen, tested

    def _slip(self, chance: Chance, sections: list[list[str]]) -> None:
        if not chance.happens(_TYPO):
            return
        section = chance.pick([part for part in sections if part])
        at = chance.below(len(section))
        if self._english:
            section[at] = _swapped(chance, section[at])
            return
        for word, slip in self._book.slips:
            if word in section[at]:
                section[at] = section[at].replace(word, slip, 1)
                return

    def _joined(self, sentences: list[str], *, brief: bool) -> str:
        if not sentences:
            return ""
        manner = self._manner
        if brief:
            return manner.brief_join.join(sentences) + manner.stop
        return (manner.stop + manner.space).join(sentences) + manner.stop

    def _led(self, chance: Chance, sentence: str) -> str:
        return self._raised(chance.pick(self._manner.lead) + self._lowered(sentence))

    def _raised(self, sentence: str) -> str:
        return sentence[0].upper() + sentence[1:] if self._english else sentence

    def _lowered(self, sentence: str) -> str:
        if self._english and len(sentence) > 1 and sentence[1].islower():
            return sentence[0].lower() + sentence[1:]
        return sentence


def _swapped(chance: Chance, sentence: str) -> str:
    words = sentence.split(" ")
    at = chance.below(len(words))
    word = words[at]
    if len(word) > 4 and word.isalpha():
        i = 1 + chance.below(len(word) - 3)
        words[at] = word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    return " ".join(words)
