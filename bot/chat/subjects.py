"""The subjects that bring their own commands and buttons: one line each."""

from __future__ import annotations

from bot.chat import answers, asking, contacts, digest, helping, history, kb, people, personal, screen
from bot.chat.turn import Subject

SUBJECTS: tuple[Subject, ...] = (
    answers.SUBJECT,
    asking.SUBJECT,
    contacts.SUBJECT,
    digest.SUBJECT,
    helping.SUBJECT,
    history.SUBJECT,
    kb.SUBJECT,
    people.SUBJECT,
    personal.SUBJECT,
    screen.SUBJECT,
)
