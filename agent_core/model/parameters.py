"""Learns which parameters an endpoint refuses, and leaves them out of later requests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

import structlog

from agent_core.model.endpoint import StatusError

log = structlog.get_logger(__name__)

T = TypeVar("T")

_INSTEAD = {"max_tokens": "max_completion_tokens"}
# Parameters that may be left out, the least important first, because an error may name more than one.
_SAMPLING = ("frequency_penalty", "top_p", "temperature", "max_tokens", "max_completion_tokens")
_UNPROCESSED = frozenset({400, 422})  # the statuses of a request that is refused as such
_UNSUPPORTED = re.compile(
    r"(?i)unsupported|(?:not|n't) (?:be )?(?:supported?|permitted|allowed|accepted)"
    r"|un(?:known|recogni[sz]ed|expected)|deprecated|cannot both|extra (?:inputs?|fields?)|only the default"
    r"|不支持|未知|不允许"
)


class Parameters:
    """The parameters that one model at one endpoint has refused up to now."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def takes(self, name: str) -> bool:
        return name not in self._refused

    async def ask(self, send: Callable[[Mapping[str, Any]], Awaitable[T]], request: Mapping[str, Any]) -> T:
        """Return what ``send`` returns for ``request``, sending it again without a parameter that is refused.

        ``max_tokens`` becomes ``max_completion_tokens``; others are left out. Raises the errors of ``send``. An
        omission is remembered once it has helped, because an error may name a parameter and mean something else.
        """
        refused: set[str] = set()
        while True:
            sent = _taken(request, self._refused | refused)
            try:
                answer = await send(sent)
            except StatusError as error:
                name = _refused(error, sent) if error.status in _UNPROCESSED else None
                if name is None:
                    raise
                refused.add(name)
                continue
            for name in sorted(refused - self._refused):
                log.info("model_parameter_refused", model=request.get("model"), parameter=name)
            self._refused |= refused
            return answer


def _taken(request: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    taken = {_INSTEAD.get(name, name) if name in refused else name: request[name] for name in request}
    return {name: value for name, value in taken.items() if name not in refused}


def _refused(error: StatusError, sent: Mapping[str, Any]) -> str | None:
    """Return the parameter of ``sent`` that is refused as such, not for its value; None if there is none."""
    words = error.words
    if _UNSUPPORTED.search(f"{words} {error.code}".replace("_", " ")):
        if error.param in _SAMPLING and error.param in sent:
            return error.param
        for name in _SAMPLING:
            if name in sent and re.search(rf"(?<!\w){name}(?!\w)", words):
                return name
    if "stream_options" in sent and "stream_options" in words:  # an older endpoint; it does not count tokens then
        return "stream_options"
    if "tools" in sent and "tool" in words.lower():  # answers are read in any form
        return "tools"
    return None
