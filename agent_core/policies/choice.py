"""Which policies hold for a task: by its text, by the schedule or by the command."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from agent_core.policies.base import Policy
from agent_core.policies.customer_reply import CustomerReply, NoBuiltInAI
from agent_core.policies.fresh_frame import FreshFrame
from agent_core.policies.nothing_new import NothingNew
from agent_core.policies.provenance import Provenance
from agent_core.policies.right_chat import RightChat
from agent_core.policies.safety import AllowedApps, AskBeforeRisk, DeliveryAlone, NothingRisky, OneApp
from agent_core.policies.unread_page import UnreadPage


class PolicyName(StrEnum):
    REPLY = "reply"  # a customer is answered: the knowledge gate, and all that belongs to it
    CAREFUL = "careful"  # any other task: a person is asked before what pays, deletes, calls …
    OPEN = "open"  # nothing is asked, nothing blocked but other apps than those that are named


# The table comes first: it turns a proposal into what the others then judge.
REPLY_POLICIES: tuple[Policy, ...] = (
    CustomerReply(),
    NoBuiltInAI(),
    OneApp(),
    UnreadPage(),
    NothingRisky(),
    DeliveryAlone(),
    Provenance(),
    RightChat(),
    FreshFrame(),
    NothingNew(),
)

_POLICIES: dict[PolicyName, tuple[Policy, ...]] = {
    PolicyName.REPLY: REPLY_POLICIES,
    PolicyName.CAREFUL: (AllowedApps(), AskBeforeRisk(), FreshFrame()),
    PolicyName.OPEN: (AllowedApps(), FreshFrame()),
}


def policies_of(name: PolicyName) -> Sequence[Policy]:
    return _POLICIES[name]
