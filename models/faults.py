"""Translate what an HTTP client and an OpenAI-protocol server can raise into an :class:`LlmError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai

from .deadline import Deadline
from .failure import LlmError, LlmFault

# In order: the first class that fits decides. httpx errors that pass through the client bare come from the
# body of a stream; those inside an APIConnectionError come from before it.
_KINDS: tuple[tuple[tuple[type[BaseException], ...], LlmFault, str], ...] = (
    (
        (TimeoutError, openai.APITimeoutError, httpx.TimeoutException),
        LlmFault.TIMEOUT,
        "no answer within {s:g} s",
    ),
    ((openai.APIStatusError,), LlmFault.HTTP, "the server answered {status}"),
    ((httpx.ConnectError, httpx.UnsupportedProtocol), LlmFault.REFUSED, "nothing answers at its address"),
    (
        (openai.APIConnectionError, httpx.TransportError, httpx.StreamError),
        LlmFault.CUT_OFF,
        "the connection broke",
    ),
    ((openai.APIError,), LlmFault.HTTP, "the server reported an error in mid-answer"),
    (
        (openai.OpenAIError, ValueError, AttributeError, KeyError, TypeError, httpx.InvalidURL),
        LlmFault.HTTP,
        "what answers at its address does not speak the OpenAI protocol",
    ),
)


def fault_of(error: BaseException, deadline: Deadline) -> LlmError | None:
    """The fault behind an exception; None for one that is none of ours, such as a cancellation."""
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else None
    inner = cause if isinstance(cause, httpx.TransportError) else error
    for kinds, fault, text in _KINDS:
        if isinstance(inner, kinds):
            status = getattr(inner, "status_code", "")
            return LlmError(fault, text.format(s=deadline.allowed_s, status=status))
    return None


@contextmanager
def faults(deadline: Deadline) -> Iterator[None]:
    """Within, whatever the client raises becomes an :class:`LlmError`.

    Raises:
        LlmError: with the fault.
    """
    try:
        yield
    except LlmError:
        raise
    except Exception as error:
        found = fault_of(error, deadline)
        if found is None:
            raise
        raise found from error
