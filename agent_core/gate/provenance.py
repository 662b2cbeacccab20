"""Nothing that the model writes leaves: texts to a customer come from the knowledge base or a person, by delivery."""

from __future__ import annotations

from agent_core.actions.types import Type, TypeName
from agent_core.gate.base import Situation, Verdict


class Provenance:
    """The model may type one thing: the contact's exact name, where it searches, never in a chat."""

    name = "provenance"

    def review(self, verdict: Verdict, situation: Situation) -> Verdict:
        action = verdict.action
        if not isinstance(action, Type | TypeName):
            return verdict
        contact = situation.gate.contact
        if not contact or action.text.strip() != contact:
            key = "gate.type_blocked" if situation.chat is not None or not contact else "gate.search_name_only"
            return verdict.block(self.name, situation.say(key, text=action.text, contact=contact))
        if situation.chat is not None:
            return verdict.block(self.name, situation.say("gate.name_in_chat", text=action.text))
        return verdict
