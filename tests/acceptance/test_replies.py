"""Spoilt replies, as many as fit into a few seconds; ``tests.acceptance.replies`` reads a million."""

from __future__ import annotations

from statistics import median

from tests.acceptance.replies import LIMIT, USUAL_LIMIT, fuzz
from tests.acceptance.replies_rules import complaint


def test_nothing_is_read_that_the_rules_do_not_allow() -> None:
    found = fuzz(20_000, seed=1)
    assert found.wrong[:3] == []
    assert found.actions > 5_000  # much of it is still read, or nothing is looked at
    assert found.slowest <= LIMIT
    # Measured again if a machine with other work was slow for a moment.
    assert any(median(fuzz(20_000, seed=seed).usual if seed > 1 else found.usual) <= USUAL_LIMIT for seed in (1, 2, 3))


def test_the_rules_notice_what_is_wrong() -> None:
    """The judge can fail: each of these may not come of its text."""
    tap = {"kind": "tap", "element": (5, 6), "message": None}
    text = 'do(action="Tap", element=[5, 6])'
    assert complaint(tap, text, "autoglm") == ""
    assert complaint({**tap, "element": (5, 7)}, text, "autoglm")
    assert complaint({**tap, "element": (5, 1001)}, text, "autoglm")
    assert complaint({**tap, "extra": 1}, text, "autoglm")
    assert complaint({"kind": "back"}, text, "autoglm")
    typed = {"kind": "type", "text": "你好"}
    assert complaint(typed, 'do(action="Type", text="\\u4f60好")', "autoglm") == ""
    assert complaint(typed, 'do(action="Type", text="你好吗")', "autoglm")
    assert complaint(typed, 'do(action="Type", text="你好', "autoglm")
    assert complaint({"kind": "finish", "message": "", "success": True}, 'do(action="Abort")', "autoglm")
