"""The knowledge base is asked in the contact's own chat only, by the whole name."""

from __future__ import annotations

from agent_core.actions.types import Action, GetKnowledgeData
from agent_core.gate.base import Situation, Verdict, allow, block
from agent_core.screen.compare import Likeness, counts_members, likeness, same_name, without_count
from agent_core.screen.readings import ChatScreen
from agent_core.session import GateState


def title_likeness(chat: ChatScreen, contact: str) -> Likeness:
    """Return how the name in the chat's header stands to the contact's. Another chat is OTHER, and so is any group."""
    if not contact or chat.group:
        return Likeness.OTHER
    return likeness(chat.title, contact, drawn=chat.drawn)


def is_contacts(chat: ChatScreen, gate: GateState) -> bool:
    """Return whether the title is the contact's: by its whole name, or by a person's word.

    A group may have a contact's name. It is the contact's chat by a person's word alone.
    """
    by_name = title_likeness(chat, gate.contact) is Likeness.SAME
    return by_name or gate.confirmed(chat.title, chat.title_print, group=chat.group)


def is_named_group(chat: ChatScreen, contact: str) -> bool:
    """Return whether the chat is the group that ``contact`` names, with the count of its members as in "11(3)"."""
    if not counts_members(contact):
        return False
    names = [contact, without_count(contact)] if chat.group else [contact]
    return any(same_name(chat.title, one, drawn=chat.drawn) for one in names)


class RightChat:
    """A query in another chat is blocked. Delivery asks a person about an unsure chat, one whose name only looks like
    the contact's, and a group that the task names."""

    name = "right_chat"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        contact, chat = situation.gate.contact, situation.chat
        if not isinstance(proposal, GetKnowledgeData) or not contact or chat is None or not chat.sure:
            return allow(proposal)
        alike = title_likeness(chat, contact) is Likeness.ALIKE
        if alike or is_contacts(chat, situation.gate) or is_named_group(chat, contact):
            return allow(proposal)
        return block(situation.say(wrong_chat(chat), title=chat.title, contact=contact))


def wrong_chat(chat: ChatScreen | None) -> str:
    """Return the key of the text that says that this is another chat. A group may have the very name."""
    return "gate.wrong_group" if chat is not None and chat.group else "gate.wrong_chat"
