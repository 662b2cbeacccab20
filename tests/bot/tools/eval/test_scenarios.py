"""The shipped scenarios, a part of them each day: most with the tree, some by pictures only, a few in another look.

``make eval`` runs all of them in all looks, both ways. Which ones are tried here changes with the day of the year: all
come round in 24 days in the default looks. ``TEST_DAY=45`` runs those of that day again, ``TEST_DAY=all`` all.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from bot.tools.eval.bench import Bench
from bot.tools.eval.case import run_case
from bot.tools.eval.result import Case
from bot.tools.eval.scenario import Mode
from bot.tools.eval.suite import find_cases
from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from tests.support.days import day
from tests.support.looks import OTHER_LOOKS, look_of_the_day

# All of them by pictures take five minutes of two cores. These are where a picture may deceive;
# long messages by pictures are tried in tests/agent_core/reply/test_several.py.
BY_PICTURES = {
    "ai_bait_with_the_same_words",
    "asked_again_after_an_equal_answer",
    "group_same_name",
    "image_only",
    "lookalike_names_by_picture",
    "network_banner",
    "old_draft_is_kept",
    "one_of_two_questions_recalled",
    "plain_answer",
    "popup_over_send_while_typing",
    "send_fails_with_a_red_mark",
    "similar_names",
    "three_questions_three_messages",
    "voice_only",
    "wechat_similar_names",
    "wide_digits_by_picture",
}
ALL = find_cases([])
USUAL = [case for case in ALL if case.mode is Mode.TREE or case.path.stem in BY_PICTURES]
DAY = day() or 0

IN_ANOTHER_LOOK = 8  # cases
# What the judge finds if nothing was done but a person asked.
_ASKED_INSTEAD = re.compile(
    r"status: waiting instead|sent to .+: nothing instead|asked: |provenance: nothing|ledger of .+: nothing instead"
    r"|people: nobody asked"
)


all_in = cache(lambda look: find_cases([], looks=[look]))


def cases_in_another_look(number: int) -> list[Case]:
    """A look for the day, and a part of the scenarios of its app that comes round with the days.

    With the tree if the look has a wallpaper: a picture of it is always in doubt, and a person is asked.
    """
    look = look_of_the_day(number)
    by_tree = {case.path.stem for case in ALL if case.mode is Mode.TREE}
    seen = {name for name in BY_PICTURES if not LOOKS[look].wallpaper or name not in by_tree}
    cases = [case for case in all_in(look) if case.mode is (Mode.PICTURES if case.path.stem in seen else Mode.TREE)]
    parts = -(-len(cases) // IN_ANOTHER_LOOK)
    return cases[number // len(OTHER_LOOKS) % parts :: parts]


def test_every_scenario_comes_round_in_every_look() -> None:
    seen = {(case.path.stem, case.look) for number in range(366) for case in cases_in_another_look(number)}
    assert {look for _, look in seen} == set(OTHER_LOOKS)
    by_app = {app: {case.path.stem for case in ALL if app in case.scenario.chat_apps} for app in DEFAULT_LOOKS}
    assert seen == {(name, look) for look in OTHER_LOOKS for name in by_app[LOOKS[look].app]}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "case", cases_in_another_look(DAY), ids=lambda case: f"{case.path.stem}-{case.mode.value}-{case.look}"
)
async def test_scenario_in_another_look(bench: Bench, case: Case) -> None:
    """Expect what the file says; or, if a look tells less than the usual one, a question to a person and no more.

    By pictures the demo's rules do not find every row of a dark list. A message that fills the screen shows no avatar,
    and on a wallpaper nothing else tells for sure whose it is.
    """
    result = await run_case(bench, case)
    fills = LOOKS[case.look].wallpaper and case.path.stem == "question_longer_than_screen"
    tells_less = fills or case.mode is Mode.PICTURES
    asked = result.statuses[-1:] == ["waiting"] and result.asked and not result.replies
    problems = [p for p in result.problems if not (tells_less and asked and _ASKED_INSTEAD.match(p))]
    assert problems == [], f"TEST_DAY={DAY}"


def test_the_ones_by_pictures_are_there() -> None:
    assert {case.path.stem for case in ALL if case.mode is Mode.PICTURES} >= BY_PICTURES
    assert len({case.path for case in ALL}) >= 100


@pytest.mark.rotating(parts=24)
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("case", USUAL, ids=lambda case: f"{case.path.stem}-{case.mode.value}")
async def test_scenario(bench: Bench, case: Case) -> None:
    result = await run_case(bench, case)
    assert result.problems == [], f"TEST_DAY={DAY}"
