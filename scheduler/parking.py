"""Parking a phone: where a run waits for a person or is held, the phone rests at a screen that harms nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog

from agent_core.devices.base import Device, Key
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.model.base import Completion, Model, OnThinking
from agent_core.ports import Lease
from agent_core.session import QuestionKind, Session
from scheduler.signals import StopSignal

log = structlog.get_logger(__name__)

# While one of these is open the screen is left as it is: somebody has the phone in hand, is to act on this very screen,
# or has a draft in front that leaving might send away.
LEFT_ALONE = frozenset({QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE, QuestionKind.FOREIGN_DRAFT})


def may_go_home(session: Session) -> bool:
    """Whether the phone may be brought to its home screen where this run rests."""
    return session.question is None or session.question.kind not in LEFT_ALONE


async def park(device: Device, lease: Lease, session: Session) -> bool:
    """Bring the phone to its home screen, if it may; whether it was. What goes wrong is logged: the run rests anyway.

    Of a chat that was opened by its number it is forgotten, so that the next leg may open it so once more. The caller
    saves the session.
    """
    if not may_go_home(session) or not await go_home(device, lease, session.run_id):
        return False
    session.opened_by_number = False
    return True


async def go_home(device: Device, lease: Lease, run_id: str) -> bool:
    """Bring the phone to its home screen; False where that failed, which is logged. LeaseLost."""
    try:
        await lease.check()
        await device.key(Key.HOME)
    except LeaseLost:
        raise
    except PhonedeskError as error:
        log.warning("phone_not_parked", serial=device.serial, run=run_id, error=str(error))
        return False
    return True


class ParkingModel:
    """A model whose calls Hold may cut: while it thinks nothing is done on the phone."""

    def __init__(self, model: Model, stop: StopSignal) -> None:
        self._model = model
        self._stop = stop

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        with self._stop.may_park():
            return await self._model.complete(messages, on_thinking=on_thinking)

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        with self._stop.may_park():
            return await self._model.ask(messages)

    async def transcribe(self, picture: Any, instruction: str) -> str:
        return await self._model.transcribe(picture, instruction)

    async def close(self) -> None:
        await self._model.close()
