from __future__ import annotations

from scheduler.watches.looks import Settling


def test_who_has_stopped_typing_is_ready_once() -> None:
    settling = Settling(settle=2, longest=15)
    settling.see({"11": "a"}, 0)
    settling.see({"11": "b"}, 1.5)
    assert (settling.ready(3.4), settling.due_in(3.4)) == ({}, 0.10000000000000009)
    assert settling.ready(3.5) == {"11": "b"}
    settling.done("11")
    settling.see({"11": "b"}, 4)
    assert settling.ready(99) == {}
    settling.see({"11": "c"}, 5)
    assert settling.ready(7) == {"11": "c"}


def test_who_never_stops_is_ready_at_last() -> None:
    settling = Settling(settle=2, longest=15)
    for second in range(15):
        assert settling.ready(second) == {}
        settling.see({"11": str(second)}, second)
    assert settling.ready(15) == {"11": "14"}


def test_what_is_gone_was_read_by_somebody() -> None:
    settling = Settling(settle=2, longest=15)
    settling.see({"11": "a"}, 0)
    settling.see({}, 1)
    assert (settling.ready(9), settling.due_in(9)) == ({}, None)
    settling.see({"11": "a"}, 10)
    settling.done("11")
    settling.see({}, 11)
    settling.see({"11": "a"}, 12)  # the same words again, on a phone that does not tell when
    assert settling.ready(14) == {"11": "a"}
