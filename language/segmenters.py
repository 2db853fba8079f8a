"""The two foreign word cutters, loaded on first use: jieba for Chinese, MeCab for Japanese."""

from __future__ import annotations

import logging
import threading
import warnings
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from .resources import DATA

ZH_LEXICON = DATA / "lexicon.zh.txt"

_LOADING = threading.Lock()
_JAPANESE = threading.Lock()
_MAX_RUN = 2_000
_NEGATIONS = frozenset({"無い", "無し", "ない", "ず", "ぬ", "まい"})
_NO_CONTENT = frozenset({"助詞", "助動詞", "補助記号", "記号", "空白", "感動詞", "接続詞", "連体詞"})


@lru_cache(maxsize=1)
def segmenter_versions() -> dict[str, str]:
    """Installed versions of the packages that decide how words are cut."""
    return {name: version(name) for name in ("jieba", "fugashi", "unidic-lite")}


def zh_lexicon() -> list[str]:
    """Our clinical words, one a line; ``#`` starts a comment."""
    lines = ZH_LEXICON.read_text(encoding="utf-8").splitlines()
    return [word for line in lines if (word := line.partition("#")[0].strip())]


def chinese_words(run: str) -> list[str]:
    """Words of a run of Chinese characters, with the words inside long words."""
    cutter = _chinese()
    return [str(word) for word in cutter.cut_for_search(run, HMM=False)]


def japanese_words(run: str) -> list[str]:
    """Dictionary forms of the content words in a run of kana and Chinese characters."""
    words: list[str] = []
    for start in range(0, len(run), _MAX_RUN):
        with _JAPANESE:
            nodes = _japanese()(run[start : start + _MAX_RUN])
        for node in nodes:
            feature = node.feature
            lemma = (feature.lemma or node.surface).partition("-")[0]
            if lemma in _NEGATIONS:
                words.append("無い")
            elif feature.pos1 not in _NO_CONTENT:
                words.append(lemma)
    return words


@lru_cache(maxsize=1)
def _chinese() -> Any:
    with _LOADING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415

        jieba.setLogLevel(logging.WARNING)
        cutter = jieba.Tokenizer()
        # Its own initialisation would leave a cache in the shared temporary folder and trust one found there.
        cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
        cutter.initialized = True
        for word in zh_lexicon():
            cutter.add_word(word)
        return cutter


@lru_cache(maxsize=1)
def _japanese() -> Any:
    import fugashi  # noqa: PLC0415

    dictionary = import_module("unidic_lite").DICDIR
    return fugashi.Tagger(f'-d "{dictionary}" -r "{dictionary}/mecabrc"')
