"""Finds headings and how prominently each is written; what they mean together is for ``sections``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .heading_lookup import HeadingLookup
from .headings import HAN_OR_KANA, NOTHING_BEHIND, WORD, Found, Heading, HeadingTable, heading_table
from .soap import find_soap

_REACH = 80
"""How far back from a colon a heading may begin; keeps the search linear."""
_MAX_ALONE = 60
_MAX_WORDS = 5
_MIN_SHOUT = 4
_TAIL = 16

_MARK = "|".join(
    (
        r"#{1,6}",
        r"[-•*·+–—■◆●◎○□▶►※☆★◇▼▲]{1,3}",
        r"\(?[0-9]{1,2}[.)、]",
        r"\(?[一二三四五六七八九十]{1,3}[.)、]",
        r"[①-⑳]",
        r"\(?[ivxIVX]{1,4}[.)]",
    )
)
_LEAD = re.compile(rf"[ \t>]{{0,40}}(?P<marks>(?:(?:{_MARK})[ \t]{{0,8}}){{0,3}})[*_\"'`]{{0,3}}")
_BOX = re.compile(
    r"\[[ \t]*([^\[\]\n]{1,40})\]|\*\*([^*\n]{1,40})\*\*|<([^<>\n]{1,40})>|__([^_\n]{1,40})__"
    r"|\(([^()\n]{1,40})\)"
)
_PARENTHESES = 5
_VERBS = frozenset({"is", "was", "are", "were"})
_LINKING_VERB = re.compile(r"[ \t]+(?:is|was|are|were)[ \t]*\Z", re.IGNORECASE)
_SIGN = re.compile(r":+|[-–—=→|\t]+>?")
_TRAILING = frozenset(" \t\"'*_`]}>|.~#")
_BEFORE = " \t\"'*_`#>-•[({"
_BEHIND_A_LONE_HEADING = " \t:*_#=\"'|.-~`"
_BOXING = frozenset("#■◆●◎○□▶►※☆★◇▼▲")
_BULLETS = frozenset("-•·+–—")
_RUN_IN = Heading("diagnosis", minor=False, weak=False, without_colon=True)


def find_headings(shadow: str) -> Iterator[Found]:
    """Headings from first to last, none overlapping another."""
    letters = find_soap(shadow)
    next_letter = 0
    finder = _LineReader(shadow, heading_table())
    start = 0
    for line in shadow.split("\n"):
        end = start + len(line)
        candidates = list(finder.read(start, end)) if line and not line.isspace() else []
        while next_letter < len(letters) and letters[next_letter].start <= end:
            candidates.append(letters[next_letter])
            next_letter += 1
        yield from _apart(candidates)
        start = end + 1


def _apart(candidates: list[Found]) -> Iterator[Found]:
    position = -1
    for found in sorted(candidates, key=lambda f: (f.start, -f.end)):
        if found.start >= position:
            yield found
            position = found.end


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: ``start``, ``end``, where its words begin (``body``), and the marks in front of them."""

    start: int
    body: int
    end: int
    marks: str


class _LineReader:
    """Reads one line at a time."""

    def __init__(self, shadow: str, table: HeadingTable) -> None:
        self.shadow = shadow
        self.lookup = HeadingLookup(shadow, table)

    def read(self, start: int, end: int) -> Iterator[Found]:
        """Candidates on one line, in no order, some perhaps overlapping."""
        lead = _LEAD.match(self.shadow, start, end)
        line = _Line(start, lead.end(), end, lead["marks"]) if lead else _Line(start, start, end, "")
        leading = self._leading(line)
        if leading is not None:
            yield leading
        for box in _BOX.finditer(self.shadow, start, end):
            found = self._boxed(box, line)
            if found is not None:
                yield found
        for match in self.lookup.table.run_in.finditer(self.shadow, start, end):
            words = list(WORD.finditer(self.shadow, *match.span(1)))
            yield self._found(
                self.lookup.suffix(words)[1] or _RUN_IN, line, words, match.end(), line_start=False
            )
        floor = start
        for sign in _SIGN.finditer(self.shadow, floor, end):
            if ":" not in sign[0] and not self._dash_may_count(sign.start(), line):
                continue
            found = self._signed(sign, floor, line)
            if found is not None:
                yield found
                floor = found.end
            elif ":" in sign[0]:
                floor = max(floor, sign.end() - 1)

    def _leading(self, line: _Line) -> Found | None:
        """A heading alone on its line, or one that opens the line without a colon."""
        words = list(WORD.finditer(self.shadow, line.body, min(line.end, line.body + _REACH)))
        if not words:
            return None
        if line.end - line.body <= _REACH:
            rest = self.shadow[line.body : line.end].rstrip(_BEHIND_A_LONE_HEADING)
            rest_end = self._strip_trailer(line.body, line.body + len(rest))
            whole = [word for word in words if word.start() < rest_end]
            first, heading = self.lookup.suffix(whole)
            marked = rest.isupper() or "#" in line.marks
            if (
                heading is not None
                and len(rest) <= _MAX_ALONE
                and (self.lookup.all_modify(whole[:first], heading) or (marked and len(whole) <= _MAX_WORDS))
            ):
                return self._found(heading, line, whole, line.end, line_start=True)
        return self._without_colon(words, line)

    def _without_colon(self, words: list[re.Match[str]], line: _Line) -> Found | None:
        """As in "Dx migraine", "诊断 偏头痛", "IMPRESSION Migraine": a heading and a blank."""
        function_words = self.lookup.table.function_words
        for count in range(min(len(words) - 1, _MAX_WORDS), 0, -1):
            name, last, behind = words[:count], words[count - 1], words[count]
            first, heading = self.lookup.suffix(name)
            if heading is None or not self.lookup.all_modify(name[:first], heading):
                continue
            strong = last[0].lower() in self.lookup.table.opening_words
            gap = self.shadow[last.end() : behind.start()]
            if strong and behind[0].lower() in _VERBS and len(words) > count + 1:  # Impression is migraine
                behind = words[count + 1]
            if behind[0].lower() in function_words or not gap or gap.strip(" \t;." if strong else " \t"):
                continue
            cjk = HAN_OR_KANA.match(last[0]) is not None
            shouted = (
                not cjk and all(w[0].isupper() for w in name) and last.end() - name[0].start() >= _MIN_SHOUT
            )
            short = heading.kind == "diagnosis" and line.end - line.start <= _REACH
            if heading.without_colon or strong or (shouted and (short or not behind[0].isupper())):
                return self._found(heading, line, name, behind.start(), line_start=True)
        return None

    def _boxed(self, box: re.Match[str], line: _Line) -> Found | None:
        """【主诉】, [CC], **Diagnosis**, <diagnosis>."""
        group = next(i for i in range(1, _PARENTHESES + 1) if box[i] is not None)
        line_start = box.start() <= line.body
        if group == _PARENTHESES and not line_start:
            return None
        inner, inner_end = box.span(group)
        inner_end = self._strip_trailer(inner, inner_end)
        words = _unnumbered(list(WORD.finditer(self.shadow, inner, inner_end)))
        first, heading = self.lookup.suffix(words)
        if heading is None or not self.lookup.all_modify(words[:first], heading):
            return None
        after = self._skip(box.end(), line.end, " \t:*")
        boxed = _Line(line.start, line.body, line.end, "#")
        return self._found(heading, boxed, words, after, line_start=line_start, start=box.start())

    def _signed(self, sign: re.Match[str], floor: int, line: _Line) -> Found | None:
        """A heading in front of a colon (anywhere) or a dash (behind a boundary)."""
        left_end = self._strip_trailer(max(floor, sign.start() - _REACH), sign.start())
        verb = _LINKING_VERB.search(self.shadow, max(floor, left_end - _TAIL), left_end)
        left_end = verb.start() if verb else left_end
        words = list(WORD.finditer(self.shadow, max(floor, left_end - _REACH), left_end))
        if not words or words[-1].end() < left_end - 2:
            return None
        first, heading = self.lookup.suffix(words)
        if heading is None:
            return None
        first = self.lookup.first_modifier(words, first)
        name_start = words[first].start()
        line_start = name_start - line.start <= _REACH and not self.shadow[line.body : name_start].strip(
            _BEFORE
        )
        boundary = line_start or first == 0 or self.lookup.parted(words[first - 1].end(), name_start)
        if ":" in sign[0]:
            cjk = HAN_OR_KANA.match(words[-1][0]) is not None
            sure = cjk or boundary or (heading.kind == "diagnosis" and not heading.weak)
            counts = sure or words[first][0][0].isupper()
        else:
            counts = self._dash_counts(heading, sign, boundary=boundary, line_start=line_start)
        if not counts:
            return None
        after = self._skip(sign.end(), line.end, " \t*_\"'`")
        return self._found(heading, line, words[first:], after, line_start=line_start)

    def _dash_may_count(self, position: int, line: _Line) -> bool:
        """A quick no for the many hyphens of ordinary text."""
        if position - line.body <= _REACH:
            return True
        before = self.shadow[position - _TAIL : position].rstrip().lower()
        return before.endswith(self.lookup.table.diagnosis_ends)

    def _dash_counts(
        self, heading: Heading, sign: re.Match[str], *, boundary: bool, line_start: bool
    ) -> bool:
        if heading.kind == "diagnosis":
            return boundary
        before = self.shadow[sign.start() - 1]
        return line_start and (
            before.isspace() or not before.isascii() or not set(sign[0]).isdisjoint("=|\t")
        )

    def _skip(self, position: int, end: int, signs: str) -> int:
        while position < end and self.shadow[position] in signs:
            position += 1
        return position

    def _strip_trailer(self, floor: int, end: int) -> int:
        """Leaves out what may stand between a heading and its colon: "(ICD-10)", "#1", quotes, blanks."""
        shadow = self.shadow
        while end > floor:
            last = shadow[end - 1]
            if last in _TRAILING:
                end -= 1
            elif last == ")":
                opening = shadow.rfind("(", floor, end)
                end = opening if opening >= 0 else end - 1
            elif last.isdigit():
                number = end - 1
                while number > floor and end - number < 3 and shadow[number - 1].isdigit():
                    number -= 1
                if shadow[number - 1 : number] not in {" ", "#", "."}:
                    return end
                end = number
            else:
                return end
        return end

    def _found(
        self,
        heading: Heading,
        line: _Line,
        words: list[re.Match[str]],
        after: int,
        *,
        line_start: bool,
        start: int | None = None,
    ) -> Found:
        name_start, name_end = words[0].start(), words[-1].end()
        marks = line.marks if line_start or line.marks == "#" else ""
        if line_start:
            start = line.start
        return Found(
            heading=heading,
            start=name_start if start is None else start,
            name_start=name_start,
            name_end=name_end,
            end=after,
            line=line.start,
            line_start=line_start,
            alone=NOTHING_BEHIND.match(self.shadow, after) is not None,
            capitals=self.shadow[name_start:name_end].isupper(),
            boxed=not _BOXING.isdisjoint(marks),
            bullet=not _BULLETS.isdisjoint(marks) or marks.strip() in {"*", "**"},
        )


def _unnumbered(words: list[re.Match[str]]) -> list[re.Match[str]]:
    return words[1:] if len(words) > 1 and words[0][0].isdigit() else words
