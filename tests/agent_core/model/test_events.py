"""Server-sent events, cut anywhere."""

from __future__ import annotations

import pytest

from agent_core.model.api_types import EventReader

STREAM = (
    b": a comment\r\n\r\ndata: one\r\n\r\nevent: x\ndata:two\ndata: \xe4\xba\x8c\nid: 7\n\ndata\n\n\n\n"
    b"data: three\r\rdata: no end"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_events_are_whole_wherever_the_bytes_are_cut(size: int) -> None:
    reader = EventReader()
    found = [data for at in range(0, len(STREAM), size) for data in reader.feed(STREAM[at : at + size])]
    assert found == ["one", "two\n二", "", "three"]
