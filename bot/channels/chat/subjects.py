"""The list of subjects, which bring their own commands and buttons."""

from __future__ import annotations

from bot.channels.chat import (
    answers,
    asking,
    console,
    contacts,
    devices,
    digest,
    helping,
    history,
    kb,
    learning,
    offered,
    people,
    personal,
    plans,
    proposals,
    runs,
    schedules,
    screen,
    sweeps,
)
from bot.channels.chat.turn import Subject

SUBJECTS: tuple[Subject, ...] = (
    answers.SUBJECT,
    asking.SUBJECT,
    console.SUBJECT,
    contacts.SUBJECT,
    devices.SUBJECT,
    digest.SUBJECT,
    helping.SUBJECT,
    history.SUBJECT,
    kb.SUBJECT,
    learning.SUBJECT,
    offered.SUBJECT,
    people.SUBJECT,
    personal.SUBJECT,
    plans.SUBJECT,
    proposals.SUBJECT,
    runs.SUBJECT,
    schedules.SUBJECT,
    screen.SUBJECT,
    sweeps.SUBJECT,
)
