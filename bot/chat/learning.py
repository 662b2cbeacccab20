"""Getting to know an app on a phone, in words for people: for the terminal and the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.screen.readings import SendState
from bot.chat.texts import Texts

if TYPE_CHECKING:
    from agent_core.apps.learnt import LearntApp
    from agent_core.learning import Tried
    from agent_core.screen.page_report import PageReport

WRONG = ("title", "sides", "words", "input", "other")  # what a person may say was read wrongly


def found_line(page: PageReport, app: str, words: Texts) -> str:
    """One sentence of what was read: "title 11, 3 messages, the newest from the customer: …"."""
    newest = page.messages[-1] if page.messages else None
    title = page.title.text if page.title else ""
    if newest is None:
        said = words.get("learn.found_empty", app=app, title=title)
    else:
        kind = words.get(f"reading.kind_{newest.kind.value}")
        said = words.get(
            "learn.found",
            app=app,
            title=title,
            count=len(page.messages),
            who=words.get(f"learn.from_{newest.side.value}"),
            text=newest.text or kind,
        )
    return said + _input(page, words)


def _input(page: PageReport, words: Texts) -> str:
    if page.input is None:
        return words.get("learn.input_voice")
    state = page.send.state if page.send else SendState.ABSENT
    return words.get(f"learn.input_{state.value}")


def result_lines(learnt: LearntApp, app: str, tried: Tried, words: Texts) -> tuple[str, ...]:
    """What was learnt and what follows from it."""
    by = words.get(f"learn.by_{learnt.sends_by}")
    lines = [words.get("learn.kept", app=app, version=learnt.version, by=by)]
    if tried.sent is not None:
        lines.append(words.get("learn.arrived" if tried.sent else "learn.not_arrived"))
    lines.append(words.get(f"learn.tree_{learnt.tree}"))
    return tuple(lines)
