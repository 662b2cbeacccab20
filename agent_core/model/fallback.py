"""Asks models in order: the next one if one fails, and the first again after a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import structlog
from PIL import Image

from agent_core.errors import ModelError, ModelFormat, ModelLimit, ModelRefused, ModelSpent, ModelUnreachable
from agent_core.model.base import Completion, Model, OnThinking, Request
from agent_core.model.client import MAY_PASS
from agent_core.model.profile import ModelProfile
from agent_core.model.usage import Meter
from agent_core.retry import RETRIES, Sleep

log = structlog.get_logger(__name__)

AGAIN_AFTER = 60.0
LONGEST_REST = 600.0
LONGEST_WISH = 3600.0  # a server may ask for at most this: its clock may be wrong
SHORT_PAUSE = 10.0  # a server may ask for this many seconds if none of the others answers
_DELAYS = RETRIES[ModelUnreachable]
# The kinds of requests. A model that failed at an action rests from everything; one that failed at something else rests
# from that only.
_ACTION, _TEXT, _PICTURE = "action", "text", "picture"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mind:
    """A model with the profile by which it is asked and read."""

    model: Model
    profile: ModelProfile


@dataclass(slots=True)
class _Rest:
    """The rest of a model that failed ``failures`` times in a row, last with an error of this ``kind``.

    Seconds of our clock.
    """

    until: float
    noted_at: float
    kind: str
    failures: int = 1


class Fallbacks:
    """A model with fallbacks, which asks the next model within the same call if one fails; implements ``Model``.

    A model that cannot be reached, is too slow or is rate limited is tried once before the next is asked, and again
    only if no other answers; so make its own client with ``alone=False``. A model that failed is not asked for
    ``again_after`` seconds (or as long as its server wants, an hour at most), twice as long with each failure in a row,
    unless every other fails, too; then one call tries it, while the others continue with the next. A model that refused
    only this request's content does not rest. A limit of ours applies to all: ModelLimit is raised at once. If all
    fail, the first one's error is raised.

    meter: gets the names of the model that answered and of the one that it replaced.

    Raises ValueError if there is no model.
    """

    def __init__(
        self,
        minds: Sequence[Mind],
        *,
        again_after: float = AGAIN_AFTER,
        meter: Meter | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if not minds:
            raise ValueError("Which models are to be asked?")
        self._minds = tuple(minds)
        self._again_after = again_after
        self._meter = meter or Meter()
        self._clock = clock
        self._sleep = sleep
        self._rests: dict[tuple[str, int], _Rest] = {}  # by kind of request and model
        self._answers = 0  # the model that answered last

    @property
    def name(self) -> str:
        """The name of the model that is asked first."""
        return self._minds[0].model.name

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        async def ask(mind: Mind) -> Completion:
            sent = messages.written_for(mind.profile) if isinstance(messages, Request) else messages
            return await mind.model.complete(sent, on_thinking=on_thinking)

        index, completion, instead_of = await self._first(_ACTION, range(len(self._minds)), ask)
        self._tell(index, instead_of)
        if index == 0:
            return completion
        return replace(completion, profile=self._minds[index].profile, instead_of=instead_of)

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        return (await self._first(_TEXT, range(len(self._minds)), lambda mind: mind.model.ask(messages)))[1]

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        """Ask only the models that see."""
        seeing = [index for index, mind in enumerate(self._minds) if mind.profile.vision]
        if not seeing:
            said = f"The model {self.name} is set up without vision and cannot read a picture."
            raise ModelFormat(said, key="model_blind", model=self.name)
        return (await self._first(_PICTURE, seeing, lambda mind: mind.model.transcribe(picture, instruction)))[1]

    async def close(self) -> None:
        for mind in self._minds:
            await mind.model.close()

    async def _first(self, what: str, among: Sequence[int], ask: Callable[[Mind], Awaitable[T]]) -> tuple[int, T, str]:
        """Return the first model that answers, its answer, and the kind of error of the preferred model, or ""."""
        begun = self._clock()
        resting = [index for index in among if self._rests_now(what, index)]
        awake = [index for index in among if index not in resting]
        turns = [(awake, _DELAYS), (resting, ())] if awake else [(resting, _DELAYS)]
        failed: dict[int, ModelError] = {}
        for among_these, delays in turns:
            left = among_these
            for delay in (0.0, *delays):
                if delay and left:
                    await self._sleep(max(_wait(failed[index], delay) for index in left))
                for index in left:
                    try:
                        answer = await self._asked(what, index, ask, begun)
                    except ModelLimit:
                        raise
                    except ModelError as error:
                        failed[index] = error
                        continue
                    if index != among[0]:
                        self._meter.stood_in(*(self._minds[one].model.name for one in (index, among[0])))
                    instead_of = failed[among[0]].kind if among[0] in failed else self._kind_of(what, among[0])
                    return index, answer, instead_of
                left = [index for index in left if _may_pass(failed[index])]
        raise _all_failed([failed[index] for index in sorted(failed)])

    async def _asked(self, what: str, index: int, ask: Callable[[Mind], Awaitable[T]], begun: float) -> T:
        """Ask one model and update its rest.

        A rest that is over continues for other calls until this one has answered.
        """
        if (rest := self._rests.get((what, index))) is not None:
            rest.until = max(rest.until, self._clock() + self._again_after)
        try:
            answer = await ask(self._minds[index])
        except ModelError as error:
            self._note(what, index, error, begun)
            raise
        self._rests.pop((what, index), None)
        return answer

    def _rests_now(self, what: str, index: int) -> bool:
        now = self._clock()
        rests = (self._rests.get((each, index)) for each in (what, _ACTION))
        return any(rest is not None and rest.until > now for rest in rests)

    def _kind_of(self, what: str, index: int) -> str:
        rest = self._rests.get((what, index)) or self._rests.get((_ACTION, index))
        return rest.kind if rest is not None else ""

    def _note(self, what: str, index: int, error: ModelError, begun: float) -> None:
        if isinstance(error, ModelLimit):
            return
        if isinstance(error, ModelRefused):  # it is reachable, and other requests may be sent to it
            self._rests.pop((what, index), None)
            return
        if what != _ACTION and isinstance(error, ModelFormat):
            return  # this is about one text or picture, and says nothing about the next
        before, now = self._rests.get((what, index)), self._clock()
        failures = before.failures if before is not None else 0
        if before is None or before.noted_at < begun:  # otherwise it was counted already
            failures += 1
        pause = min(self._again_after * 2 ** min(failures - 1, 10), max(self._again_after, LONGEST_REST))
        seconds = max(pause, min(_wait(error, 0.0), LONGEST_WISH))
        self._rests[what, index] = _Rest(now + seconds, now, error.kind, failures)
        name = self._minds[index].model.name
        log.warning("model_rests", model=name, kind=error.kind, seconds=round(seconds), error=error.message)

    def _tell(self, index: int, instead_of: str) -> None:
        """Log once that another model answers now, or the first again."""
        if index == self._answers:
            return
        self._answers = index
        name = self._minds[index].model.name
        if index:
            log.warning("model_fallback", model=name, instead_of=self.name, kind=instead_of)
        else:
            log.info("model_back", model=name)


def _may_pass(error: ModelError) -> bool:
    """Tell whether the error may pass so soon that we wait for it: the client leaves these retries to us."""
    return isinstance(error, MAY_PASS) and not isinstance(error, ModelSpent) and _wait(error, 0.0) <= SHORT_PAUSE


def _wait(error: ModelError, usual: float) -> float:
    """Return the seconds to wait: as the server wants, else ``usual``."""
    wanted: float | None = getattr(error, "retry_after", None)
    return usual if wanted is None else wanted


def _all_failed(failed: Sequence[ModelError]) -> ModelError:
    first, *others = failed
    if not others:
        return first
    noted = f"The others failed, too: {' '.join(error.message for error in others)}"
    values = {**first.values, "others": tuple(others)}
    made = type(first)(f"{first.message} {noted}", advice=first.advice, key=first.key, **values)
    made.retried = True
    cast("Any", made).retry_after = getattr(first, "retry_after", None)
    return made
