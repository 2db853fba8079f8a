"""Words for the sparse channel; the tokeniser's identity is stored with every index."""

from __future__ import annotations

from typing import Protocol


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
