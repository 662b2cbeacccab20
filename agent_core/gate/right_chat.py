"""The knowledge base is asked in the contact's own chat only, by the whole name."""

from __future__ import annotations

from agent_core.actions.types import Action, GetKnowledgeData
from agent_core.gate.base import Situation, Verdict, allow, block
from agent_core.screen.compare import same_name


class RightChat:
    """A query in another chat is blocked. An unsure chat is left to delivery, which must tell."""

    name = "right_chat"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        contact, chat = situation.gate.contact, situation.chat
        if not isinstance(proposal, GetKnowledgeData) or not contact or chat is None or not chat.sure:
            return allow(proposal)
        if same_name(chat.title, contact) or situation.gate.confirmed(chat.title, chat.title_print):
            return allow(proposal)
        return block(situation.say("gate.wrong_chat", title=chat.title, contact=contact))
