"""Parking a phone: where a run waits for a person or is held, the phone rests at a screen that harms nobody."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from agent_core.devices.base import Device, Key
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from agent_core.ports import Lease
from agent_core.session import QuestionKind, Session
from scheduler.runs.stop import StopSignal

log = structlog.get_logger(__name__)

# While one of these is open the screen is left as it is: somebody has the phone in hand, is to act on this very screen,
# or has a text in front that leaving might send away. Not so for a sensitive tap: a page that pays is not left open,
# and a person's yes is bound to its app and page (agent_core.policies.approval), which the run opens again.
LEFT_ALONE = frozenset(
    {QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE, QuestionKind.FOREIGN_DRAFT, QuestionKind.NO_SEND}
)


def may_go_home(session: Session) -> bool:
    """Whether the phone may be brought to its home screen where this run rests."""
    return session.question is None or session.question.kind not in LEFT_ALONE


async def park(device: Device, lease: Lease, session: Session) -> bool:
    """Bring the phone to its home screen, if it may; whether it was. What goes wrong is logged: the run rests anyway.

    Of a chat that was opened by its number it is forgotten, so that the next attempt may open it so once more. The
    caller saves the session.
    """
    if not may_go_home(session) or not await go_home(device, lease, session.run_id):
        return False
    session.number_tried = session.gate.row_entered = False
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


class ParkingModel(ModelWrapper):
    """A model whose calls Hold may cut: while it thinks nothing is done on the phone.

    Not while it reads a picture: that may be in the middle of a delivery.
    """

    def __init__(self, model: Model, stop: StopSignal) -> None:
        super().__init__(model)
        self._stop = stop

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        with self._stop.may_park():
            return await super().complete(messages, on_thinking=on_thinking)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        with self._stop.may_park():
            return await super().ask(messages)
