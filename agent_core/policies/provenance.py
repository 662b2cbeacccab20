"""Nothing that the model writes leaves: texts to a customer come from the knowledge base or a person, by delivery."""

from __future__ import annotations

from agent_core.actions.types import Action, Type, TypeName
from agent_core.perception.compare import name
from agent_core.policies.base import Situation, Verdict, allow, block


class Provenance:
    """The model may type one thing: the contact's exact name, where it searches, never in a chat."""

    name = "provenance"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        if not isinstance(proposal, Type | TypeName):
            return allow(proposal)
        contact = situation.gate.contact
        if not contact or name(proposal.text) != name(contact):
            key = "gate.type_blocked" if situation.chat is not None or not contact else "gate.search_name_only"
            return block(situation.say(key, text=proposal.text, contact=contact))
        if situation.chat is not None:
            return block(situation.say("gate.name_in_chat", text=proposal.text))
        return allow(proposal)
