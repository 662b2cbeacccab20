"""Models in the order in which they are asked: the next one where one fails, the first again after a while."""

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
LONGEST_WISH = 3600.0  # of a server's: its clock may be wrong
SHORT_PAUSE = 10.0  # seconds that a server may ask for, where none of the others answers
_DELAYS = RETRIES[ModelUnreachable].delays
# What is asked. A model that rests from actions rests from all; one that failed with another thing from that only.
_ACTION, _TEXT, _PICTURE = "action", "text", "picture"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mind:
    """A model, and how it is asked and read."""

    model: Model
    profile: ModelProfile


@dataclass(slots=True)
class _Rest:
    """Of a model that failed ``failures`` times in a row, with an error of this ``kind``. Seconds of our clock."""

    until: float
    noted_at: float
    kind: str
    failures: int = 1


class Fallbacks:
    """Fits ``Model``. Whatever one model fails with, the next is asked within the same call.

    One that cannot be reached, is too slow or is asked too often is tried once before the next is asked, and again only
    where no other answers; so its own client is to be made with ``alone=False``. One that failed is not asked for
    ``again_after`` seconds (or what its server wants, an hour at most), twice as long with each failure in a row,
    unless every other fails, too; then one call tries it, while the others go on with the next. One that refused the
    content only of this request does not rest. A limit of ours holds for all: ModelLimit is raised at once. Where all
    fail the error is that of the first. ``meter`` is told who stood in for whom. ValueError without any.
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
        self._rests: dict[tuple[str, int], _Rest] = {}  # by what is asked, and the model
        self._answers = 0  # the one that answered last

    @property
    def name(self) -> str:
        """Of the one that is asked first."""
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
        """By those that see."""
        seeing = [index for index, mind in enumerate(self._minds) if mind.profile.vision]
        if not seeing:
            said = f"The model {self.name} is set up without vision and cannot read a picture."
            raise ModelFormat(said, key="model_blind", model=self.name)
        return (await self._first(_PICTURE, seeing, lambda mind: mind.model.transcribe(picture, instruction)))[1]

    async def close(self) -> None:
        for mind in self._minds:
            await mind.model.close()

    async def _first(self, what: str, among: Sequence[int], ask: Callable[[Mind], Awaitable[T]]) -> tuple[int, T, str]:
        """The first that answers, its answer, and the kind of error of the one that is asked first ("": it did)."""
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
        """One model, and what that tells of its rest. A rest that is over goes on for the calls beside this one."""
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
        if isinstance(error, ModelRefused):  # it is there, and may be asked something else
            self._rests.pop((what, index), None)
            return
        if what != _ACTION and isinstance(error, ModelFormat):
            return  # of one text or picture, which tells nothing of the next
        before, now = self._rests.get((what, index)), self._clock()
        failures = before.failures if before is not None else 0
        if before is None or before.noted_at < begun:  # else this call, or one beside it, has told of the same
            failures += 1
        pause = min(self._again_after * 2 ** min(failures - 1, 10), max(self._again_after, LONGEST_REST))
        seconds = max(pause, min(_wait(error, 0.0), LONGEST_WISH))
        self._rests[what, index] = _Rest(now + seconds, now, error.kind, failures)
        name = self._minds[index].model.name
        log.warning("model_rests", model=name, kind=error.kind, seconds=round(seconds), error=error.message)

    def _tell(self, index: int, instead_of: str) -> None:
        """Once: that another one answers now, or the first again."""
        if index == self._answers:
            return
        self._answers = index
        name = self._minds[index].model.name
        if index:
            log.warning("model_fallback", model=name, instead_of=self.name, kind=instead_of)
        else:
            log.info("model_back", model=name)


def _may_pass(error: ModelError) -> bool:
    """So soon that it is waited for here: the client leaves these retries to us."""
    return isinstance(error, MAY_PASS) and not isinstance(error, ModelSpent) and _wait(error, 0.0) <= SHORT_PAUSE


def _wait(error: ModelError, usual: float) -> float:
    """Seconds, as the server wants it."""
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
