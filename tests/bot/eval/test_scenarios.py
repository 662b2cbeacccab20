"""Every shipped scenario, in each of its modes."""

from __future__ import annotations

import pytest

from bot.eval.bench import Bench
from bot.eval.case import run_case
from bot.eval.result import Case
from bot.eval.suite import find_cases

CASES = find_cases([])


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}-{case.mode.value}")
async def test_scenario(bench: Bench, case: Case) -> None:
    result = await run_case(bench, case)
    assert result.problems == []
