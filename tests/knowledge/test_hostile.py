"""A knowledge service that does its worst, against each provider: what it costs, and that it ends in an error that says
what is wrong or in nothing that is sent.

Each group of cases runs in a process of its own, whose memory and event loop are watched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, get_args

import pytest

from agent_core.texts.clean import is_clean
from knowledge.service import MOST_RECORDS
from simulator.knowledge.answers import ANSWER, BODIES, DIRTY, NO_SCORES, QUESTION, Form
from simulator.knowledge.hostile import CASES, TOKEN, HostileKnowledge, body_of, bomb
from tests.knowledge.hostile_calls import ask
from tests.support.child import Cost, measure_beside

pytestmark = pytest.mark.rotating(parts=3)

TIMEOUT = 1.0  # seconds for a call; so short that there is no time for another try
MOST_MEMORY = 200  # MiB
MOST_BLOCKED = 2.0  # seconds without a turn of the event loop: half a second at most on a machine that is not busy
MOST_OVER = 5.0  # seconds beyond the timeout

UNREACHABLE = "KnowledgeUnreachable"
GROUPS: dict[str, tuple[str, ...]] = {
    "endless": ("endless_body", "endless_error", "gigabyte", "terabyte_chunk", "tiny_chunks"),
    "packed": ("gzip_bomb", "gzip_bomb_of_an_error", "gzip_twice", "packed_unasked"),
    "slow": ("slow_drip", "slow_drip_of_an_error", "slow_headers", "silence", "endless_chunk_extension"),
    "heads": (
        *("endless_headers", "endless_header_line", "endless_header_name", "endless_status_line", "endless_trailers"),
        *("endless_early_hints", "odd_status", "switching_protocols", "not_http", "closed_at_once"),
    ),
    "lengths": (
        *("length_too_long", "length_too_short", "length_below_zero", "two_lengths"),
        *("not_a_chunk", "chunk_cut_off", "chunk_size_overflow"),
    ),
    "later": ("redirect", "redirect_that_keeps_the_method", "later_again_and_again", "much_later", "later_than_time"),
    "objects": ("objects", "bare_objects", "lists", "members", "nested_objects", "numbers"),
    "deep": ("deep_lists", "deep_objects", "long_number", "long_fraction"),
}
ERRORS = {
    "endless_error": "KnowledgeAuth",
    "gzip_bomb_of_an_error": "KnowledgeAuth",
    "later_again_and_again": "KnowledgeQuota",
}
SAYS = {
    "endless_body": "more than 4 MB",
    "gigabyte": "more than 4 MB",
    "gzip_bomb": "packed data",
    "packed_unasked": "packed data",
    "slow_drip": "within 1 s",
    "slow_headers": "within 1 s",
    "silence": "within 1 s",
    "redirect": "redirects elsewhere",
    "redirect_that_keeps_the_method": "redirects elsewhere",
    "objects": "more than 400,000 objects",
    "deep_objects": "not JSON",
}
FORMS = (
    *("nothing", "null", "a_number", "a_text", "a_list", "an_object", "cut_off", "a_page", "bad_utf8", "nul_bytes"),
    *("other_encoding", "records_null", "records_text", "records_object", "list_of_null", "list_of_numbers"),
    *("list_of_lists", "text_is_object", "score_of_types", "deep_text", "error_of_odd_type", "dirty_error"),
)
READ = ("good", "composed_in_parts", "many_records", "rising_scores", "odd_scores", "dirty_texts", "long_text")


@pytest.fixture
async def service() -> AsyncIterator[HostileKnowledge]:
    async with HostileKnowledge() as service:
        yield service
        assert service.refused == []


async def measured(
    service: HostileKnowledge, cases: Sequence[str], *, timeout: float = TIMEOUT, together: bool = False
) -> Cost:
    for name in cases:  # what the service makes once is not a part of what its client takes
        for form in get_args(Form):
            _ = body_of(name, form) if name in BODIES else bomb()
    cost = await measure_beside(ask, service.url, TOKEN, cases, QUESTION, timeout, together)
    assert cost.error == "", f"{cost.error}: {cost.message}"
    assert cost.memory < MOST_MEMORY, cost
    assert cost.longest_block < MOST_BLOCKED, cost
    assert set(service.calls) == set(cases)
    assert len(cost.result) == 3 * len(cases)
    for one in cost.result:
        assert one["seconds"] < timeout + MOST_OVER, one
        assert TOKEN not in one["message"]
        assert is_clean(one["message"])
    return cost


def test_every_case_is_tried() -> None:
    assert {*FORMS, *READ, *(name for group in GROUPS.values() for name in group)} == set(CASES)


@pytest.mark.parametrize("group", GROUPS)
async def test_what_is_no_answer_ends_in_its_error_and_costs_little(service: HostileKnowledge, group: str) -> None:
    cost = await measured(service, GROUPS[group], together=group == "slow")
    for one in cost.result:
        late = f"within {TIMEOUT:g} s" in one["message"]  # a busy machine
        assert late or one["error"] == ERRORS.get(one["case"], UNREACHABLE), one
        assert late or SAYS.get(one["case"], "") in one["message"], one
    assert service.elsewhere == []


async def test_an_answer_of_another_form_is_an_error_or_nothing(service: HostileKnowledge) -> None:
    cost = await measured(service, FORMS)
    for one in cost.result:
        assert one["error"] or one["sent"] == "", one
        assert not any(sure for _, _, sure in one["records"]) or one["case"] == "deep_text", one
    errors = [one["case"] for one in cost.result if one["error"]]
    assert set(FORMS) - set(errors) == {"score_of_types", "deep_text"}


async def test_what_can_be_read_is_read_and_never_too_much_of_it(service: HostileKnowledge) -> None:
    told: dict[str, list[dict[str, Any]]] = {}
    for one in (await measured(service, READ, timeout=20)).result:
        told.setdefault(one["case"], []).append(one)
    for one in told["good"]:
        assert one["sent"] == ANSWER
    for one in told["composed_in_parts"]:
        assert one["sent"] == "Caf\u00e9, 48小时内发货"
    for one in told["many_records"]:
        assert len(one["records"]) == MOST_RECORDS
    for one in told["rising_scores"]:
        assert [text for text, _, _ in one["records"]] == [
            str(number) for number in range(80_000 - MOST_RECORDS, 80_000)
        ]
    for one in told["odd_scores"]:
        assert one["records"] == [(str(number), None, False) for number in range(len(NO_SCORES))]
    for one in told["dirty_texts"]:
        assert len(one["records"]) == len(DIRTY)
        assert all(is_clean(text) and not sure for text, _, sure in one["records"])
        assert one["sent"] == ""
    for one in told["long_text"]:
        assert (one["error"], one["records"]) == ("", [])
