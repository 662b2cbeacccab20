"""Where nothing is to be answered, nothing is asked and nothing is done."""

from __future__ import annotations

from agent_core.actions.types import Action, Finish
from agent_core.perception.readings import BubbleState, ChatScreen, Side
from agent_core.policies.base import Situation, Verdict, allow, rewrite
from agent_core.policies.right_chat import is_contacts


def nothing_new(chat: ChatScreen) -> bool:
    """Whether the newest message is ours and has arrived, or nobody wrote anything."""
    newest = chat.newest
    return newest is None or (newest.side is Side.ME and newest.state is BubbleState.OK)


class NothingNew:
    """In the contact's own chat, without an open question: whatever is proposed, the run is over, successfully.

    Where the reply flow is at work it tells this itself, by the ledger, before a model is asked (``open_rows``). This
    is for a run without one: a dry run.
    """

    name = "nothing_new"

    def review(self, proposal: Action, situation: Situation) -> Verdict:
        chat, gate = situation.chat, situation.gate
        if chat is None or not chat.sure or gate.knowledge_done or situation.open_rows or not nothing_new(chat):
            return allow(proposal)
        if not gate.contact or not is_contacts(chat, gate):
            return allow(proposal)
        said = situation.say("run.nothing_new", contact=gate.contact)
        return rewrite(Finish(message=said), said)
