"""A run that waits for days is taken up by another release: what one has stored the other reads."""

from __future__ import annotations

from typing import Any

from agent_core.session import Session

# The fields that a stored session must have, of everything in it. More can not be asked for: older ones lack it.
NEEDED = {
    "Session": {"run_id", "task"},
    "AskedQuestion": {"ledger_id", "fingerprint", "words"},
    "Choice": {"value"},
    "Cluster": {"messages"},
    "Planned": {"ledger_id", "fingerprint", "cluster", "query"},
    "Question": {"id", "kind"},
    "ReplyRecord": {"contact", "question", "text", "provenance"},
    "KeptNote": {"text"},
    "StepRecord": {"index"},
    "StepVerdict": {"policy", "decision"},
    # the actions of steps
    "DoubleTap": {"element"},
    "Launch": {"app"},
    "LongPress": {"element"},
    "PressKey": {"key"},
    "Swipe": {"start", "end"},
    "Tap": {"element"},
    "Type": {"text"},
    "TypeName": {"text"},
}
OLD: dict[str, Any] = {
    "run_id": "r1",
    "task": "QQ回复联系人11",
    "status": "waiting",
    "steps": [{"index": 1, "action": {"kind": "Launch", "app": "QQ"}}, {"index": 2}],
    "notes": [{"text": "第一页"}],
    "planned": {
        "ledger_id": 1,
        "fingerprint": "f",
        "query": "几天能发货",
        "cluster": ["几天能发货"],
    },
    "cluster": {"messages": ["几天能发货"], "asked": [{"ledger_id": 1, "fingerprint": "f", "words": "几天能发货"}]},
    "question": {"id": "q1", "kind": "delivery_unknown", "choices": [{"value": "arrived"}]},
}


def test_no_field_was_added_that_older_sessions_lack() -> None:
    schema = Session.model_json_schema()
    parts: dict[str, Any] = {**schema["$defs"], "Session": schema}
    needed = {name: set(part["required"]) for name, part in parts.items() if part.get("required")}
    assert {name: new for name, fields in needed.items() if (new := fields - NEEDED.get(name, set()))} == {}


def test_a_session_of_the_first_release_is_read() -> None:
    session = Session.model_validate(OLD)
    assert session.question is not None
    assert (session.question.id, len(session.steps), session.notes[0].text) == ("q1", 2, "第一页")
    assert Session.model_validate_json(session.model_dump_json()) == session


def test_what_a_newer_release_stored_beside_it_is_passed_over() -> None:
    steps = [{"index": 1, "action": {"kind": "Launch", "app": "QQ"}, "mood": 1}, {"index": 2, "mood": 1}]
    newer = {**OLD, "mood": "good", "steps": steps}
    assert Session.model_validate(newer) == Session.model_validate(OLD)
