"""How a delivery can end, and the checks of the chat in front that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent_core.devices.base import Frame
from agent_core.perception.compare import Likeness, name, tells_status
from agent_core.perception.readings import ChatScreen
from agent_core.policies.right_chat import is_named_group, title_likeness
from agent_core.reply.match import same_cluster
from agent_core.session import GateState, Planned


class Result(StrEnum):
    SENT = "sent"
    CHANGED = "changed"  # something new stands in the chat; nothing was sent
    NOT_IN_CHAT = "not_in_chat"
    WRONG_CHAT = "wrong_chat"
    UNSURE_CHAT = "unsure_chat"
    FOREIGN_DRAFT = "foreign_draft"
    KEYBOARD = "keyboard"  # the text did not get into the input
    NOT_SENT = "not_sent"  # neither the button nor Enter had an effect; the input is empty again
    NO_SEND = "no_send"  # nothing is seen that sends, or it had no effect; the text stands typed
    VOICE_BAR = "voice_bar"  # the input is a bar to hold and talk, and stays one
    RED_MARK = "red_mark"
    UNKNOWN = "unknown"
    TOUCHED = "touched"  # a person touched the phone; nothing was sent


@dataclass(frozen=True, slots=True)
class Outcome:
    """``detail`` is data for the message: a draft, a doubt. ``title`` is that of the chat in front, ``chat`` what was
    read of it where that is not sure."""

    result: Result
    detail: str = ""
    title: str = ""
    frame: Frame | None = None
    chat: ChatScreen | None = None


def check_chat(chat: ChatScreen | None, gate: GateState, *, bound: bool = False) -> Outcome | None:
    """None where the chat in front surely is the contact's, by its whole name; else why not.

    ``bound``: the messages are going to be compared with those that were read before, so that it does no harm when the
    upper ones are out of sight now.
    """
    if chat is None:
        return Outcome(Result.NOT_IN_CHAT)
    read = chat.sure or (bound and chat.partial)
    if gate.confirmed(chat.title, chat.title_print, group=chat.group):
        # Their word holds for what they were shown; another doubt is asked about anew, and so are messages that nobody
        # has read: they may be other ones by now.
        known = read or (not chat.torn and {doubt.key for doubt in chat.doubts} <= set(gate.doubts_confirmed))
        return None if known else _unsure(chat, chat.title)
    # What is in doubt of the messages makes another customer's chat no less another one.
    named = chat.title_sure and bool(chat.title.strip()) and bool(gate.contact)
    if named and not is_named_group(chat, gate.contact) and title_likeness(chat, gate.contact) is Likeness.OTHER:
        return Outcome(Result.WRONG_CHAT, chat.title, chat.title, chat=chat)
    if not gate.contact or not read:
        return _unsure(chat, chat.title)
    if is_named_group(chat, gate.contact):  # a person may have such a name; a group is not answered by itself
        return _unsure(chat, f"group? {gate.contact}")
    like = title_likeness(chat, gate.contact)
    if like is Likeness.ALIKE:
        return _unsure(chat, chat.title)
    if like is Likeness.OTHER:  # by a title that is not sure
        return Outcome(Result.WRONG_CHAT, chat.title, chat.title, chat=chat)
    # Once a person has said that what follows the name is a status, another status is none but that.
    status_known = bool(gate.chat_confirmed) and tells_status(gate.chat_confirmed)
    if tells_status(chat.title) and name(chat.title) != name(gate.contact) and not status_known:
        return _unsure(chat, chat.title)
    return None


def _unsure(chat: ChatScreen, doubt: str) -> Outcome:
    return Outcome(Result.UNSURE_CHAT, doubt, chat.title, chat=chat)


def check_planned(chat: ChatScreen | None, gate: GateState, planned: Planned) -> Outcome | None:
    """None where ``planned`` may go into the chat in front: the contact's, its newest messages those it answers."""
    refusal = check_chat(chat, gate, bound=True)
    if refusal is None and chat is not None and not same_cluster(planned.cluster, planned.read_by, chat, planned.ours):
        return Outcome(Result.CHANGED, title=chat.title)
    return refusal
