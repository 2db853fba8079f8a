"""One canonical wording for names of diseases, so that spelling, word order and word form do not matter.

Ours; every word list is a data file. English text becomes a tuple of canonical words; Chinese and
Japanese text becomes one canonical string.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from functools import lru_cache

from .lexicon import read_table, spelling, word_classes

Tokens = tuple[str, ...]

_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)*")
_POSSESSIVE = re.compile(r"(?<=[a-z])['’`´](?:s\b)?")
_CJK = re.compile(r"[぀-ヿ㐀-鿿豈-﫿々]")
_SPLIT_NUMBER = re.compile(r"(?<=[a-z]{4})(?=[0-9])")
_PLURALS = (
    ("itides", "itis"),
    ("ies", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ses", "sis"),
    ("ches", "ch"),
    ("shes", "sh"),
)
_CJK_DROP = re.compile(r"[\s,，、。;；:：\-‐-―/／()（）\[\]［］【】「」『』<>＜＞〈〉《》・·.'\"“”‘’的]+")
_CJK_NUMERALS = str.maketrans("一二三四五六七八九", "123456789")
_CJK_NUMBER = re.compile(r"([一二三四五六七八九])(?=型|期|级|級|度|类|類|型)|(?<=第)([一二三四五六七八九])")
_ROMAN_CJK = re.compile(r"(?<![a-z])(viii|vii|vi|iv|ix|iii|ii|i|v|x)(?![a-z])")
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_ROMAN_VALUE = {roman: str(value) for value, roman in enumerate(_ROMANS, start=1)}
_SHORTEST_PLURAL = 5


def fold(text: str) -> str:
    """Compatibility forms, case, dashes and accents of Latin letters folded."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text)
    kept = "".join(c for c in decomposed if not "̀" <= c <= "ͯ")
    return unicodedata.normalize("NFC", kept)


def is_cjk(text: str) -> bool:
    """Whether the text has Han characters or kana."""
    return bool(_CJK.search(text))


@lru_cache(maxsize=1)
def _word_map() -> dict[str, Tokens]:
    return {row["word"]: tuple(row["canonical"].split()) for row in read_table("words.csv")}


@lru_cache(maxsize=200_000)
def canonical_word(word: str) -> Tokens:
    """Canonical words of one folded Latin word: spelling, then synonym, then singular."""
    if word[0].isdigit():
        return (word.lstrip("0") or "0",)
    for pattern, replacement in spelling():
        word = pattern.sub(replacement, word)
    mapped = _word_map().get(word)
    if mapped is None:
        word = _singular(word)
        mapped = _word_map().get(word, (word,))
    return mapped


def _singular(word: str) -> str:
    if len(word) < _SHORTEST_PLURAL or word.endswith(("ss", "us", "is", "os", "as")):
        return word
    for plural, single in _PLURALS:
        if word.endswith(plural) and len(word) > len(plural) + 2:
            return word[: -len(plural)] + single
    return word.removesuffix("s")


def relaxed(tokens: Tokens) -> list[Tokens]:
    """Ever shorter forms of a name: without its last number, any number, inheritance, onset and grade.

    Where a number or a mode of inheritance was dropped, the form with "hereditary" comes first.
    """
    out: list[Tokens] = []
    if len(tokens) > 1 and _is_subtype(tokens[-1]):
        out = [(*tokens[:-1], "hereditary"), tokens[:-1]]
    dropped: frozenset[str] = frozenset()
    hereditary = "hereditary" in tokens or any(_is_subtype(token) for token in tokens)
    for step in word_classes().relax:
        dropped |= step
        kept = tuple(t for t in tokens if t not in dropped and not _is_subtype(t))
        bare = tuple(t for t in kept if t != "hereditary")
        for form in ((*bare, "hereditary"), bare) if hereditary else (bare,):
            if bare and form not in out and sorted(form) != sorted(tokens):
                out.append(form)
    return out


def _is_subtype(token: str) -> bool:
    return token[0].isdigit() or len(token) == 1


class _PhraseTable:
    """Phrases to rewrite, by first word, longest first."""

    def __init__(self) -> None:
        self.by_first: dict[str, list[tuple[Tokens, Tokens]]] = defaultdict(list)
        for row in read_table("phrases.csv"):
            source = _words(row["phrase"])
            target = tuple(w for word in row["canonical"].split() for w in canonical_word(word))
            self.by_first[source[0]].append((source, target))
        for options in self.by_first.values():
            options.sort(key=lambda option: -len(option[0]))

    def rewrite(self, tokens: Tokens) -> Tokens:
        """Replace every phrase, from the left, once."""
        out: list[str] = []
        at = 0
        while at < len(tokens):
            for source, target in self.by_first.get(tokens[at], ()):
                if tokens[at : at + len(source)] == source:
                    out.extend(target)
                    at += len(source)
                    break
            else:
                out.append(tokens[at])
                at += 1
        return tuple(out)


@lru_cache(maxsize=1)
def _phrases() -> _PhraseTable:
    return _PhraseTable()


def _words(text: str) -> Tokens:
    """Canonical words without phrases: stop words dropped, Roman numerals turned."""
    classes = word_classes()
    out: list[str] = []
    previous = ""
    for raw in _WORD.findall(_SPLIT_NUMBER.sub(" ", _POSSESSIVE.sub("", text))):
        if raw in classes.stop or (raw == "a" and not previous):
            continue
        number = classes.roman.get(raw) or (
            classes.roman_after.get(raw) if previous in classes.numbered else None
        )
        out.extend((number,) if number else canonical_word(raw))
        previous = raw
    return tuple(out)


_SYMBOL = re.compile(r"([a-z]{2,7})[\s-]?([0-9]{1,3}[a-z]{0,2}[0-9]?)")


@lru_cache(maxsize=1)
def _series() -> dict[str, str]:
    return {row["symbol"]: row["name"] for row in read_table("series.csv")}


def expand_symbol(folded: str) -> str:
    """A numbered symbol of a hereditary disease as its name: ``"dfnb22"`` -> ``"hereditary deafness 22"``."""
    if (found := _SYMBOL.fullmatch(folded)) and (name := _series().get(found[1])):
        return f"{fold(name)} {found[2]}"
    return folded


def english_tokens(text: str) -> Tokens:
    """Canonical words of an English name, in order.

    ``english_tokens("Tumours of the kidneys")`` equals ``english_tokens("renal neoplasm")``.
    """
    folded = expand_symbol(fold(text).strip())
    for letter, name in word_classes().greek.items():
        if letter in folded:
            folded = folded.replace(letter, f" {name} ")
    return _edges(_phrases().rewrite(_words(folded)))


def _edges(tokens: Tokens) -> Tokens:
    """Short forms that mean something only before or after another word: "prostate ca", "ca breast"."""
    if len(tokens) == 1 or not tokens:
        return tokens
    first, *middle, last = tokens
    edge = word_classes().edge
    return (*edge.get(first, first).split(), *middle, *edge.get(last, last).split())


def strict_key(tokens: Tokens) -> str:
    """Key of equal names: words without order, without those that say only "unspecified"."""
    vague = word_classes().vague
    kept = sorted({t for t in tokens if t not in vague})
    return " ".join(kept)


def loose_key(tokens: Tokens) -> str:
    """Key of nearly equal names: kinds of name ("disease", "syndrome") dropped where two words remain."""
    classes = word_classes()
    kept = sorted({t for t in tokens if t not in classes.vague and t not in classes.light})
    return " ".join(kept) if len(kept) > 1 else ""


def cjk_loose(canonical: str) -> str:
    """A canonical Chinese or Japanese name without characters that only name a kind of thing; or empty."""
    for word in word_classes().cjk_relax:
        canonical = canonical.replace(word, "")
    kept = "".join(sorted(char for char in canonical if char not in word_classes().cjk_light))
    return kept if len(kept) > 1 else ""


@lru_cache(maxsize=4)
def _cjk_rewrites(language: str) -> tuple[re.Pattern[str], dict[str, str]]:
    table = {r["written"]: r["canonical"] for r in read_table("cjk.csv") if r["language"] == language}
    for canonical in list(table.values()):
        if any(written in canonical for written in table):
            table.setdefault(canonical, canonical)
    parts = []
    for written in sorted(table, key=lambda w: (-len(w), w)):
        escaped = re.escape(written)
        parts.append(rf"(?<![a-z]){escaped}(?![a-z])" if written.isascii() else escaped)
    return re.compile("|".join(parts)), table


@lru_cache(maxsize=1)
def _han() -> dict[int, str]:
    return str.maketrans({row["variant"]: row["simplified"] for row in read_table("han.csv")})


def cjk_text(text: str, language: str) -> str:
    """Canonical string of a Chinese or Japanese name: widths, numerals, synonyms and punctuation.

    Traditional characters of Chinese become simplified ones.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    if language != "ja":
        folded = folded.translate(_han())
    folded = _ROMAN_CJK.sub(lambda m: _ROMAN_VALUE[m[1]], folded)
    folded = _CJK_NUMBER.sub(lambda m: m[0].translate(_CJK_NUMERALS), folded)
    pattern, table = _cjk_rewrites(language if language in ("zh", "ja") else "zh")
    folded = pattern.sub(lambda m: table[m[0]], folded)
    return _CJK_DROP.sub("", folded)
