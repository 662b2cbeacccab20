"""Every shipped scenario with the tree; by pictures only those in which reading decides, and all with ``make eval``."""

from __future__ import annotations

import pytest

from bot.eval.bench import Bench
from bot.eval.case import run_case
from bot.eval.result import Case
from bot.eval.scenario import Mode
from bot.eval.suite import find_cases

# All of them by pictures take five minutes of two cores. These are where a picture may deceive.
BY_PICTURES = {
    "ai_bait_with_the_same_words",
    "asked_again_after_an_equal_answer",
    "group_same_name",
    "image_only",
    "long_answer_in_parts",
    "lookalike_names_by_picture",
    "network_banner",
    "old_draft_is_kept",
    "one_of_two_questions_recalled",
    "plain_answer",
    "popup_over_send_while_typing",
    "question_longer_than_screen",
    "send_fails_with_a_red_mark",
    "similar_names",
    "three_questions_three_messages",
    "voice_only",
    "wechat_similar_names",
    "wide_digits_are_another_name",
}
ALL = find_cases([])
CASES = [case for case in ALL if case.mode is Mode.TREE or case.path.stem in BY_PICTURES]


def test_the_ones_by_pictures_are_there() -> None:
    assert {case.path.stem for case in ALL if case.mode is Mode.PICTURES} >= BY_PICTURES
    assert len({case.path for case in ALL}) >= 100


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}-{case.mode.value}")
async def test_scenario(bench: Bench, case: Case) -> None:
    result = await run_case(bench, case)
    assert result.problems == []
