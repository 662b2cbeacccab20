"""The knowledge base is asked in the contact's own chat only, by the whole name."""

from __future__ import annotations

from agent_core.actions.types import Action, GetKnowledgeData
from agent_core.gate.base import Situation, Verdict, allow, block
from agent_core.screen.compare import same_name
from agent_core.screen.readings import ChatScreen
from agent_core.session import GateState


def is_contacts(chat: ChatScreen, gate: GateState) -> bool:
    """Return whether the title is the contact's: by its whole name, or by a person's word.

    A group may have the contact's name. It is the contact's chat by a person's word alone.
    """
    by_name = bool(gate.contact) and same_name(chat.title, gate.contact) and not chat.group
    return by_name or gate.confirmed(chat.title, chat.title_print, group=chat.group)


class RightChat:
    """A query in another chat is blocked. An unsure chat, and a group of the contact's name, are left to delivery,
    which asks a person."""

    name = "right_chat"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        contact, chat = situation.gate.contact, situation.chat
        if not isinstance(proposal, GetKnowledgeData) or not contact or chat is None or not chat.sure:
            return allow(proposal)
        if is_contacts(chat, situation.gate) or (chat.group and same_name(chat.title, contact)):
            return allow(proposal)
        return block(situation.say("gate.wrong_chat", title=chat.title, contact=contact))
