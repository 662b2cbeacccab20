"""What of a text leaves: as it is seen, in one form, whoever wrote it."""

from __future__ import annotations

import time
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.ports import Chosen, Record
from agent_core.reply.choosing import decide, sure_record
from agent_core.reply.planning import in_parts, planned_by_person, planned_with
from agent_core.session import Answer, Planned
from agent_core.texts.clean import clean_text, is_clean
from simulator.knowledge.answers import DIRTY

EMOJI = ["❤️", "☺️", "👨‍👩‍👧‍👦", "👩🏽‍💻", "🏳️‍🌈", "1️⃣", "#️⃣", "©️", "‼️", "🇨🇳", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🚚", "⚠︎", "〽️", "㊙️"]
# Pieces that mean something only beside others, and letters that change beside each other.
PIECES = [
    *EMOJI,
    *DIRTY.values(),
    *("\u200d", "\ufe0f", "\ufe0e", "\u20e3", "\u0301", "\u0323", "\u0338", "\u0958", "\u2329", "\u2190"),
    *("\x1b", "[", "31m", "\x9b", "\r", "\n", "\r\n", "\u2028", "\t", " ", "\u3000", "\u0085"),
    *("发货", "ᄒ", "ᅡ", "\U000e0067", "=", "e", "1"),
]
ODD = st.characters(categories=["Cc", "Cf", "Cs", "Mn"])
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters() | ODD).map("".join)
TURNS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
PLANNED = Planned(ledger_id=1, fingerprint="f", cluster=["几天能发货"], query="几天能发货")


@given(TEXTS)
def test_a_text_that_leaves_can_be_typed_stored_and_seen(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned == clean_text(cleaned) == cleaned.strip() == unicodedata.normalize("NFC", cleaned)
    assert is_clean(cleaned)
    assert {char for char in cleaned if unicodedata.category(char) in {"Cc", "Cs"}} <= {"\n", "\t"}
    assert not set(cleaned) & (TURNS | set("\u200b\u2060\ufeff"))
    assert cleaned.encode().decode() == cleaned


@given(TEXTS)
def test_clean_is_what_nothing_is_left_out_of(text: str) -> None:
    same_letters = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n"))
    kept = clean_text(text) == same_letters.replace("\u2029", "\n").strip()
    assert kept or not is_clean(text)
    if is_clean(text):
        assert kept


@pytest.mark.parametrize("name", DIRTY)
def test_what_is_hidden_in_a_text_is_found_and_left_out(name: str) -> None:
    assert not is_clean(DIRTY[name])
    left = clean_text(DIRTY[name])
    assert len(left) < len(DIRTY[name])
    assert {"4", "8", "小", "时"} <= set(left)


def test_a_sequence_that_steers_a_terminal_goes_with_its_letters() -> None:
    assert clean_text("\x1b[1;31m48小时\x1b[0m") == "48小时"
    assert clean_text("\x9b2J48小时") == "48小时"


@pytest.mark.parametrize("text", [*EMOJI, "满59元包邮～", "a\tb\nc", "“好”", "한국어", "a b\u00a0c"])
def test_what_is_seen_stays(text: str) -> None:
    assert is_clean(text)
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "clean"), [("小店\ufe0f", "小店"), ("1\u200d1", "11"), ("👩\u200d", "👩"), ("1\ufe0f", "1")]
)
def test_the_parts_of_an_emoji_count_only_in_one(text: str, clean: str) -> None:
    assert not is_clean(text)
    assert clean_text(text) == clean


def test_another_spelling_of_a_letter_and_of_a_line_end_hides_nothing() -> None:
    assert is_clean("Cafe\u0301\r\n48小时\u2028好")
    assert clean_text("Cafe\u0301\r\n48小时\u2028好") == "Café\n48小时\n好"


def test_marks_without_end_take_no_time() -> None:
    begun = time.process_time()
    assert len(clean_text("a" + "\u0301\u0323" * 200_000)) < 40
    assert time.process_time() - begun < 5  # putting them in order would take a minute


# -- where it holds


def test_an_unclean_record_holds_a_clean_text_and_is_never_sure() -> None:
    record = Record("a", "48\u202e小时", "几天能发货", score=1.0, sure=True)
    assert (record.text, record.sure, record.unclean) == ("48小时", False, True)
    assert sure_record([record]) is None
    fine = Record("a", "Cafe\u0301 🚚", score=1.0, sure=True)
    assert (fine.text, fine.sure, fine.unclean) == ("Café 🚚", True, False)


class Picks:
    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen

    async def choose(self, words: str, query: str, records: object) -> Chosen | None:
        return self.chosen


async def test_nothing_unclean_is_sent_without_a_person_however_it_was_chosen() -> None:
    words = "几天能发货"
    hidden = Record("a", "付款后48小时\u200b内发货", words, score=1.0, sure=True)
    clean = Record("b", hidden.text, words, score=1.0, sure=True)
    assert await decide(None, words, words, [clean]) is not None
    assert await decide(None, words, words, [hidden]) is None
    words, clean = "什么时候能发货", replace(clean, sure=False)
    assert await decide(Picks(Chosen(clean.text, clean)), words, words, [clean]) is not None
    for chosen in (
        Chosen(hidden.text, hidden),
        Chosen("48小时内发货", clean, composed=True, sources=(clean, hidden)),
        Chosen("48小时\u2067内发货", clean, composed=True, sources=(clean,)),
    ):
        assert await decide(Picks(chosen), words, words, [chosen.record]) is None


@given(TEXTS)
def test_every_text_that_is_planned_is_clean_and_so_is_each_part(text: str) -> None:
    record = Record("a", text)
    long = f"{text}发货" * 20
    for planned in (
        planned_by_person(PLANNED, long, 30, person="店长"),
        planned_with(PLANNED, Chosen(long, record, composed=True), 30),
    ):
        assert planned.text == clean_text(long)
        assert all(part == clean_text(part) and is_clean(part) for part in planned.parts)


def test_no_emoji_and_no_letter_is_cut_in_two() -> None:
    for whole in [*EMOJI, "ẹ́"]:
        for most in range(20, 20 + len(whole)):
            parts = in_parts("长" * 19 + whole * 3 + "短" * 25 + "。", most)
            assert sum(part.count(whole) for part in parts) == 3, (whole, most)


def test_what_a_person_writes_is_cleaned_where_it_comes_in() -> None:
    assert Answer(text="\ufeff明天就发\u200b\x00 ", by="店长").text == "明天就发"
    assert Answer(text="\u202e\u200b").text == ""
