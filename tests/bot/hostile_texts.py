"""Texts that somebody outside may have chosen, and what of them a person's terminal must never get."""

from __future__ import annotations

import re

from hypothesis import strategies as st

CONTROLS = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0))]
ORDERS = ["\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil.example\x1b\\", "\x9b1A", "\r\n", "\x1bc"]
TURNS = [*map(chr, (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)))]
MARKUP = ["[red]", "[/red]", "[link=http://evil.example]", "[/]", "[[", ":smile:", "\\["]
PLAIN = ["几天能发货", "a", " ", "{name}", "%s", "😀"]

hostile = st.lists(st.sampled_from(CONTROLS + ORDERS + TURNS + MARKUP + PLAIN), min_size=1, max_size=30).map("".join)
"""Without half surrogates, which no database takes."""

hostile_or_broken = st.one_of(hostile, st.text(st.characters(codec=None), max_size=40))

DANGEROUS = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f{''.join(TURNS)}\ud800-\udfff]")  # all controls but the newline
