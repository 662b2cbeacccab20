"""The layered agent: a planner, which is a text model, directs executors, which are phone agents.

The planner is given an ``Executor`` and a ``Memory``; it knows no queue, no storage and no channel. Only
``agent_core.planner.library`` imports the library behind it, when the first plan is made.
"""

from agent_core.planner.base import (
    CallResult,
    Executor,
    Memory,
    PhoneInfo,
    PlanDone,
    PlanEvent,
    PlanFailed,
    PlanMessage,
    PlannerTask,
    ToolCalled,
    ToolReturned,
)
from agent_core.planner.tools import PlannerTool, knowledge_tool, phone_tools

__all__ = [
    "CallResult",
    "Executor",
    "Memory",
    "PhoneInfo",
    "PlanDone",
    "PlanEvent",
    "PlanFailed",
    "PlanMessage",
    "PlannerTask",
    "PlannerTool",
    "ToolCalled",
    "ToolReturned",
    "knowledge_tool",
    "phone_tools",
]
