"""What buttons a person is offered: in a chat of their own none that would be refused for their role."""

from __future__ import annotations

from dataclasses import replace

from bot.channels.chat.cards import Button
from bot.channels.chat.turn import Said
from bot.desk.actors import Actor, Role

# By what stands before the first colon of the action; every other one is for all, or its subject looks to it.
LEAST = {
    "stop": Role.OPERATOR,
    "hold": Role.OPERATOR,
    "resume": Role.OPERATOR,
    "q": Role.OPERATOR,
    "own": Role.OPERATOR,
    "mine": Role.OPERATOR,
    "go": Role.OPERATOR,
    "keep": Role.OWNER,
    "drop": Role.OPERATOR,
    "same": Role.OPERATOR,
    "timed": Role.OWNER,
    "rate": Role.OPERATOR,
    "people": Role.OWNER,
}


def for_person(said: Said, actor: Actor) -> Said:
    """Without the buttons that this person may not use. Where others read along, they stay: one of them may."""
    if actor.role is Role.OWNER:
        return said
    messages = tuple(
        replace(message, card=replace(message.card, buttons=_left(message.card.buttons, actor.role)))
        if message.chat.kind == "private" and message.chat.chat_id == actor.user_id
        else message
        for message in said.messages
    )
    return replace(said, messages=messages)


def _left(rows: tuple[tuple[Button, ...], ...], role: Role) -> tuple[tuple[Button, ...], ...]:
    kept = (tuple(button for button in row if role.covers(_least(button))) for row in rows)
    return tuple(row for row in kept if row)


def _least(button: Button) -> Role:
    return LEAST.get(button.action.partition(":")[0], Role.VIEWER)
