"""Why a language model gave no usable answer; what callers catch to fall back to the vote."""

from __future__ import annotations

from enum import StrEnum

from ..errors import ModelError
from ..query import TokenUse


class LlmFault(StrEnum):
    """The ways in which a language model can fail a question.

    Attributes:
        ABSENT: none is set.
        REFUSED: nothing answers at its address.
        TIMEOUT: the question's deadline passed.
        HTTP: the server answered with an error status.
        CUT_OFF: the answer broke off, or hit the limit on its length.
        INVALID: the answer is not what the schema or the checks ask, after one repair.
    """

    ABSENT = "absent"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    HTTP = "http error"
    CUT_OFF = "cut off"
    INVALID = "invalid json"


class LlmError(ModelError):
    """A language model that did not answer as asked.

    Attributes:
        fault: the kind of failure.
        detail: one sentence without patient text.
        tokens: spent all the same.
    """

    def __init__(self, fault: LlmFault, detail: str, tokens: TokenUse | None = None) -> None:
        self.fault = fault
        self.detail = detail
        self.tokens = tokens or TokenUse()
        super().__init__(f"{fault}: {detail}")

    @property
    def reason(self) -> str:
        """What an answer's ``degraded`` says, e.g. ``"timeout: no answer within 30 s"``."""
        return str(self)


def add_tokens(left: TokenUse, right: TokenUse) -> TokenUse:
    """Tokens of two calls together."""
    return TokenUse(prompt=left.prompt + right.prompt, output=left.output + right.output)
