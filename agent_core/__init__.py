"""A phone agent that works without the rest of the product: observe, think, gate, act.

    from agent_core import PhoneAgent

    agent = PhoneAgent(model=model, device=device)
    print(await agent.run("打开设置"))

The names below are for programs outside of this package. Each is imported when it is first used, so that importing one
module of this package does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "AgentSettings",
    "Answer",
    "Chooser",
    "Chosen",
    "Event",
    "Human",
    "KnowledgeBase",
    "Lease",
    "Ledger",
    "LedgerRow",
    "MessageKey",
    "PhoneAgent",
    "Provenance",
    "Question",
    "Record",
    "ReplyState",
    "RunStore",
    "Session",
    "Status",
    "StopGuard",
]

if TYPE_CHECKING:
    from agent_core.agent import PhoneAgent
    from agent_core.ports import (
        Chooser,
        Chosen,
        Event,
        Human,
        KnowledgeBase,
        Lease,
        Ledger,
        LedgerRow,
        MessageKey,
        Provenance,
        Record,
        ReplyState,
        RunStore,
        StopGuard,
    )
    from agent_core.session import Answer, Question, Session, Status
    from agent_core.settings import AgentSettings
else:  # hidden from type checkers, which would take any other name for a thing of this package, too
    _ELSEWHERE = {"PhoneAgent": "agent", "AgentSettings": "settings"}
    _ELSEWHERE |= dict.fromkeys(("Answer", "Question", "Session", "Status"), "session")

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'ports')}"), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
