"""Words for the sparse channel; the tokeniser's identity is stored with every index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from pydantic import Field

from .detect import detect_language
from .resources import DATA, RuleFile, fingerprint, load_rules
from .segmenters import ZH_LEXICON, chinese_words, japanese_words, segmenter_versions
from .stemming import light_stem

_STOPWORDS = DATA / "stopwords.toml"
_ROMAN_SIGN = re.compile("[\u2160-\u216b\u2170-\u217b]")
_ROMAN_WORDS = {"ii": "2", "iii": "3", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12"}
"""Without i, v and x, which are letters, and iv, which is a route of administration."""

_CJK = r"\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


def _terms_of(letters: str) -> str:
    number = r"[0-9]+(?:[./:][0-9]+)*(?:%|°[cf]?)?(?:\+(?!\w))?"  # 5.9  120/80  38.5°c  90%  2+
    word = rf"[{letters}](?:-[a-z]+|[{letters}0-9]*(?:\+(?!\w))?)"  # x-ray  β-blocker  po2  t4  k+
    return f"{number}|{word}"


_LETTERS = r"a-z\u00df-\u00f6\u00f8-\u167f\u1681-\u1fff\uac00-\ud7a3"
_TERM = re.compile(_terms_of(_LETTERS) + f"|[{_CJK}]+")
_ASCII_TERM = re.compile(_terms_of("a-z"))
_HAS_CJK = re.compile(f"[{_CJK}]")


class Tokenizer(Protocol):
    """Turns clinical text into index terms.

    Attributes:
        identity: name and version; an index built with another one refuses to answer.
    """

    identity: str

    def tokenize(self, text: str, language: str | None = None) -> list[str]:
        """Terms of one text, in order; ``language`` is detected where None."""
        ...

    def tokenize_many(self, texts: list[str], languages: list[str | None] | None = None) -> list[list[str]]:
        """Terms of many texts; equal to :meth:`tokenize` of each."""
        ...


class StopWords(RuleFile):
    """Schema of ``stopwords.toml``: index terms to leave out, by language."""

    en: list[str] = Field(min_length=1)
    zh: list[str] = Field(min_length=1)
    ja: list[str] = Field(min_length=1)


@lru_cache(maxsize=1)
def stop_words() -> StopWords:
    """The shipped stop words."""
    return load_rules(_STOPWORDS, StopWords)


def normalise(text: str) -> str:
    """Lower case, compatibility forms (full-width, ℃, half-width kana) and Roman numeral signs unfolded."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ROMAN_SIGN.sub(_roman_value, text))
    return text.lower()


def _roman_value(sign: re.Match[str]) -> str:
    return str((ord(sign[0]) & 0xF) + 1)


class _EnglishTerms(dict[str, str]):
    """Raw word -> index term, ``""`` for a word left out; filled as words are met, bounded."""

    _LIMIT = 200_000

    def __missing__(self, word: str) -> str:
        term = self._term(word)
        if len(self) < self._LIMIT and (len(word) < 5 or not word[0].isdigit()):
            self[word] = term
        return term

    @staticmethod
    def _term(word: str) -> str:
        if word in _english_stop_words():
            return ""
        return _ROMAN_WORDS.get(word) or light_stem(word)


@lru_cache(maxsize=1)
def _english_stop_words() -> frozenset[str]:
    return frozenset(stop_words().en)


_ENGLISH_TERMS = _EnglishTerms()


class EnglishTokenizer:
    """Words, numbers and clinical signs of English text, stemmed lightly.

    Kept whole: ``K+``, ``5.9``, ``120/80``, ``T4``, ``pO2``, ``β-blocker``, ``38.5°C``; kept at all: ``no``,
    ``not``, ``without``. Other hyphens part words. A run of Chinese or Japanese gives its character pairs.
    Source: ours.

    Measured on CRAFT-MD by leave-one-out BM25 (k1 1.5, b .75; 357 answerable queries; best record's label),
    top-1/top-3: words alone .258/.373, without stop words .258/.387, plural stripped .266/.403, Snowball
    .266/.415, the light stemmer used here .266/.429.
    """

    identity = ""

    def __init__(self) -> None:
        self.identity = f"en-2:{fingerprint(_STOPWORDS)}"

    def tokenize(self, text: str, language: str | None = None) -> list[str]:
        """Terms of one text; ``language`` is not looked at."""
        del language
        return _english(normalise(text))

    def tokenize_many(self, texts: list[str], languages: list[str | None] | None = None) -> list[list[str]]:
        """Terms of many texts."""
        del languages
        return [_english(normalise(text)) for text in texts]


def _english(normalised: str) -> list[str]:
    if normalised.isascii():
        return list(filter(None, map(_ENGLISH_TERMS.__getitem__, _ASCII_TERM.findall(normalised))))
    words = _TERM.findall(normalised)
    if _HAS_CJK.search(normalised):
        return _mixed(words, _pairs)
    return list(filter(None, map(_ENGLISH_TERMS.__getitem__, words)))


def _mixed(words: Iterable[str], cjk: Callable[[str], list[str]]) -> list[str]:
    """Latin words to English terms, runs of Chinese characters and kana through ``cjk``."""
    out: list[str] = []
    for word in words:
        if "\u3005" <= word[0] <= "\u9fff" or "\uf900" <= word[0] <= "\ufaff":
            out += cjk(word)
        elif term := _ENGLISH_TERMS[word]:
            out.append(term)
    return out


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


class ChineseTokenizer:
    """Dictionary words of Chinese text (jieba, search mode, our clinical lexicon), Latin words as in English.

    New words are not guessed: what no dictionary has falls into single characters, so that the same words are
    cut alike in every sentence. Long words give their parts too (高血压 -> 血压, 高血压). Source: ours.
    """

    identity = ""

    def __init__(self) -> None:
        self.identity = f"zh-1:{segmenter_versions()['jieba']}:{fingerprint(_STOPWORDS, ZH_LEXICON)}"

    def tokenize(self, text: str, language: str | None = None) -> list[str]:
        """Terms of one text; ``language`` is not looked at."""
        del language
        stop = _chinese_stop_words()
        words = _mixed(_TERM.findall(normalise(text)), chinese_words)
        return [word for word in words if word not in stop]

    def tokenize_many(self, texts: list[str], languages: list[str | None] | None = None) -> list[list[str]]:
        """Terms of many texts."""
        del languages
        return [self.tokenize(text) for text in texts]


class JapaneseTokenizer:
    """Dictionary forms of Japanese text (MeCab through fugashi, UniDic), Latin words as in English.

    Particles, endings and symbols are left out; every negation (ない, なし, ず, ぬ) becomes ``無い``.
    Source: ours.
    """

    identity = ""

    def __init__(self) -> None:
        versions = segmenter_versions()
        self.identity = f"ja-1:{versions['fugashi']}:{versions['unidic-lite']}:{fingerprint(_STOPWORDS)}"

    def tokenize(self, text: str, language: str | None = None) -> list[str]:
        """Terms of one text; ``language`` is not looked at."""
        del language
        stop = _japanese_stop_words()
        words = _mixed(_TERM.findall(normalise(text)), japanese_words)
        return [word for word in words if word not in stop]

    def tokenize_many(self, texts: list[str], languages: list[str | None] | None = None) -> list[list[str]]:
        """Terms of many texts."""
        del languages
        return [self.tokenize(text) for text in texts]


@lru_cache(maxsize=1)
def _chinese_stop_words() -> frozenset[str]:
    return frozenset(stop_words().zh)


@lru_cache(maxsize=1)
def _japanese_stop_words() -> frozenset[str]:
    return frozenset(stop_words().ja)


class ClinicalTokenizer:
    """Reads each text with the tokeniser of its language; a language not served is read as English."""

    identity = ""

    def __init__(self) -> None:
        english = EnglishTokenizer()
        self._by_language: dict[str, Tokenizer] = {
            "en": english,
            "zh": ChineseTokenizer(),
            "ja": JapaneseTokenizer(),
        }
        self._english = english
        self.identity = "clinical-1(" + ",".join(t.identity for t in self._by_language.values()) + ")"

    def tokenize(self, text: str, language: str | None = None) -> list[str]:
        """Terms of one text, in order; ``language`` is detected where None."""
        return self._for(text, language).tokenize(text)

    def tokenize_many(self, texts: list[str], languages: list[str | None] | None = None) -> list[list[str]]:
        """Terms of many texts; equal to :meth:`tokenize` of each.

        Raises:
            ValueError: as many languages as texts are needed.
        """
        if languages is None:
            return [self._for(text, None).tokenize(text) for text in texts]
        return [
            self._for(text, language).tokenize(text) for text, language in zip(texts, languages, strict=True)
        ]

    def _for(self, text: str, language: str | None) -> Tokenizer:
        if language == "en" or text.isascii():
            return self._english
        return self._by_language.get(language or detect_language(text), self._english)
