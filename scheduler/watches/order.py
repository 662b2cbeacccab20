"""The target of a watch, as people write it: ``盯着 11 小王``, ``值守 #vip``, ``watch all``."""

from __future__ import annotations

from agent_core.errors import InputRejected
from scheduler.runs.service import WATCH
from scheduler.sweeps.order import BY_WATCH, SweepOrder, read_order
from scheduler.sweeps.order import WORDS as SWEEP_WORDS
from scheduler.sweeps.order import kind_of as kind_without_watch
from storage.runs import NewRun
from storage.schedules import ScheduleRow

WORDS = ("盯着", "值守", "watch")
KIND = "watch"  # the kind of a schedule
_BETWEEN = " \t\n:：,，"


def kind_of(task: str) -> str:
    """Return the kind of run that a schedule with this task starts: ``watch``, ``sweep`` or ``run``.

    Raises InputRejected for the same reasons as ``read_order``.
    """
    return kind_without_watch(task) if read_watch(task) is None else KIND


def read_watch(task: str) -> SweepOrder | None:
    """Return the contacts that a watch is to follow, or None if the task is not a watch.

    Raises InputRejected if nobody is named, because everybody has to be asked for explicitly, and for the same reasons
    as ``read_order``.
    """
    whom = _whom(task)
    if whom is None:
        return None
    order = read_order(whom)
    if not whom or (order.everybody and whom.lower() in _apps(order)):
        raise InputRejected(
            "Who is to be watched?",
            advice="Name contacts, tags (#vip) or 所有 (all).",
            key="watch_whom",
        )
    return order


def _whom(task: str) -> str | None:
    text = task.strip()
    for word in WORDS:
        if text[: len(word)].lower() == word and (len(text) == len(word) or text[len(word)] in _BETWEEN):
            return text[len(word) :].lstrip(_BETWEEN).strip()
    return None


def _apps(order: SweepOrder) -> set[str]:
    return {name.lower() for name in (order.profile.name, *order.profile.aliases)}


def sweep_of(row: ScheduleRow, serial: str, *, by_hand: bool = False) -> NewRun:
    """Return a sweep of the chat list for the contacts of a watch.

    ``by_hand``: a person wants it, so quiet hours don't apply.
    """
    order = read_watch(row.task) or SweepOrder()
    word = SWEEP_WORDS[-1] if row.options.get("lang") == "en" else SWEEP_WORDS[0]
    return NewRun(
        f"{word} {_whom(row.task) or ''}".strip(),
        serial,
        priority=WATCH,
        options={**row.options, **order.data(), **({} if by_hand else {BY_WATCH: True})},
        requested_by=row.created_by,
        chat=row.chat,
        schedule_id=row.id,
    )
