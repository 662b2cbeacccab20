"""The traces of a plan: its events in the log, and the note that its conversation gets if it was cut off."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from agent_core.planner import PlanDone, PlanEvent, PlanFailed, PlanMessage, ToolCalled, ToolReturned
from agent_core.planner.words import texts
from agent_core.texts import kept_language
from bot.desk.run_parts import one_line
from storage.runs import RunRow

MOST_KEPT = 1000  # characters of a tool's result in the event log; the conversation has all of it
MOST_PARTS = 20  # of a plan that was cut off: the newest
MOST_SAID = 300  # characters of a part's task, and of its result


def written(event: PlanEvent) -> tuple[str, dict[str, Any]]:
    """Return the event's kind and data in the log."""
    match event:
        case ToolCalled():
            return "tool_call", {"call": event.call, "tool": event.tool_name, "args": dict(event.tool_args)}
        case ToolReturned():
            data = event.result
            said = data.get("result", "") if isinstance(data, dict) else data if isinstance(data, str) else ""
            result = str(said)[:MOST_KEPT]
            return "tool_result", {"call": event.call, "tool": event.tool_name, "ok": event.ok, "result": result}
        case PlanMessage():
            return "message", {"content": event.content}
        case PlanDone() | PlanFailed():
            return "message", {"content": ""}


def note_of(plan: RunRow, parts: Sequence[RunRow]) -> dict[str, Any]:
    """Return the note on a plan that was cut off, as an item of its conversation, in the plan's language.

    The planner's library stores a turn only once it is over, so the work of a plan that was cut off is only here. It
    has the planner's role: answers of parts come from screens, and must not count as a person's order.
    """
    words = texts(kept_language(plan.options.get("lang")))
    lines = [
        string.Template(words.cut_off_part).substitute(
            task=one_line(part.task, MOST_SAID),
            state=words.states[part.status],
            message=one_line(part.message, MOST_SAID),
        )
        for part in parts[-MOST_PARTS:]
    ]
    done = "\n".join(lines) or words.cut_off_nothing
    return {"role": "assistant", "content": string.Template(words.cut_off).substitute(done=done).strip()}
