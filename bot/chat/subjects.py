"""The subjects that bring their own commands and buttons: one line each."""

from __future__ import annotations

from bot.chat import answers, contacts, history, kb
from bot.chat.turn import Subject

SUBJECTS: tuple[Subject, ...] = (
    answers.SUBJECT,
    contacts.SUBJECT,
    history.SUBJECT,
    kb.SUBJECT,
)
