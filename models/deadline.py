"""One deadline per question, shared by every call made for it."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock.

    Attributes:
        at: seconds on ``time.monotonic()``.
        allowed_s: how long it was from the start; for messages.
    """

    at: float
    allowed_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline that many seconds from now."""
        return cls(time.monotonic() + seconds, seconds)

    @property
    def left_s(self) -> float:
        """Seconds left; 0 once it has passed."""
        return max(0.0, self.at - time.monotonic())
