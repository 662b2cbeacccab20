"""The gate: policies between what a model proposes and what is done."""

from agent_core.gate.base import Policy, Situation, Verdict, review
from agent_core.gate.customer_reply import CustomerReply, NoBuiltInAI
from agent_core.gate.detect import ReplyTask, reply_task
from agent_core.gate.provenance import Provenance
from agent_core.gate.right_chat import RightChat
from agent_core.gate.safety import DeliveryAlone, NothingRisky, OneApp

# The table comes first: it turns a proposal into what the others then judge.
REPLY_POLICIES: tuple[Policy, ...] = (
    CustomerReply(),
    NoBuiltInAI(),
    OneApp(),
    NothingRisky(),
    DeliveryAlone(),
    Provenance(),
    RightChat(),
)

__all__ = ["REPLY_POLICIES", "Policy", "ReplyTask", "Situation", "Verdict", "reply_task", "review"]
