"""What an endpoint takes of a request: it tells by refusing the rest, and is not asked with that again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import openai
import structlog

log = structlog.get_logger(__name__)

_INSTEAD = {"max_tokens": "max_completion_tokens"}
# What may be left out, the least missed first, for an error may name more than one.
_SAMPLING = ("frequency_penalty", "top_p", "temperature", "max_tokens", "max_completion_tokens")
_UNSUPPORTED = re.compile(
    r"(?i)unsupported|(?:not|n't) (?:be )?(?:supported?|permitted|allowed|accepted)"
    r"|un(?:known|recogni[sz]ed|expected)|deprecated|cannot both|extra (?:inputs?|fields?)|only the default"
    r"|不支持|未知|不允许"
)


class Parameters:
    """Of one model at one endpoint: which parameters it has refused by now."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def takes(self, name: str) -> bool:
        return name not in self._refused

    async def ask(self, create: Callable[..., Awaitable[Any]], request: Mapping[str, Any]) -> Any:
        """What ``create`` gives for ``request``, which is asked again where a parameter of it is refused.

        ``max_tokens`` becomes ``max_completion_tokens``; the others are left out. Errors as those of ``create``. What
        was left out is remembered once that has helped: an error may name a parameter and mean something else.
        """
        refused: set[str] = set()
        while True:
            sent = _taken(request, self._refused | refused)
            try:
                answer = await create(**sent)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                name = _refused(error, sent)
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


def _refused(error: openai.APIStatusError, sent: Mapping[str, Any]) -> str | None:
    """The parameter of ``sent`` that this refuses as such, not for its value; None for none."""
    words = error.message
    told = f"{words} {error.code}"
    if _UNSUPPORTED.search(told.replace("_", " ")):
        named = str(error.param or "")
        if named in _SAMPLING and named in sent:
            return named
        for name in _SAMPLING:
            if name in sent and re.search(rf"(?<!\w){name}(?!\w)", words):
                return name
    if "stream_options" in sent and "stream_options" in words:  # an older endpoint; the tokens are not counted then
        return "stream_options"
    if "tools" in sent and "tool" in words.lower():  # an answer is read in any form
        return "tools"
    return None
