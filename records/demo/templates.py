"""Phrases with slots: ``{side}`` and numbers ``{mild..severe}``, e.g. ``IOP {26..58} mmHg``."""

from __future__ import annotations

import re

from .chance import Chance

_SLOT = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)")
_SIDES = {"en": ("right", "left"), "zh": ("右", "左"), "ja": ("右", "左")}
_BRIEF_SIDES = {"en": ("R", "L"), "zh": ("右", "左"), "ja": ("右", "左")}


class Template:
    """One phrase, taken apart once.

    Args:
        text: the phrase; ``{a..b}`` is a number between ``a``, its value in a mild case, and ``b``, its value
            in a severe one, written with as many decimals as ``a`` has. ``b`` may be the smaller.
        language: of the phrase.
        brief: sides are written as ``R`` and ``L``.

    Raises:
        ValueError: a slot that is neither ``side`` nor a range.
    """

    __slots__ = ("_parts", "_sides", "text")

    def __init__(self, text: str, language: str, *, brief: bool = False) -> None:
        self.text = text
        self._sides = (_BRIEF_SIDES if brief else _SIDES)[language]
        self._parts: list[str | tuple[float, float, int] | None] = []
        for i, part in enumerate(_SLOT.split(text)):
            if i % 2 == 0:
                if part:
                    self._parts.append(part)
            elif part == "side":
                self._parts.append(None)
            elif found := _NUMBER.fullmatch(part):
                low, high = found.groups()
                decimals = len(low.partition(".")[2])
                self._parts.append((float(low), float(high), decimals))
            else:
                msg = f"slot {{{part}}} in {text!r} is neither {{side}} nor a range like {{3.5..5.1}}"
                raise ValueError(msg)

    def fill(self, chance: Chance, side: int, severity: float) -> str:
        """The phrase with its slots filled.

        Args:
            chance: draws the numbers.
            side: 0 right, 1 left.
            severity: 0 mild .. 1 severe; where in its range a number lies, give or take.
        """
        parts = self._parts
        if len(parts) == 1 and isinstance(parts[0], str):
            return parts[0]
        out = []
        for part in parts:
            if isinstance(part, str):
                out.append(part)
            elif part is None:
                out.append(self._sides[side])
            else:
                low, high, decimals = part
                at = min(max(severity + (chance.uniform() - 0.5) * 0.7, 0.0), 1.0)
                value = low + (high - low) * at
                out.append(f"{value:.{decimals}f}")
        return "".join(out)
