"""The table of targets, in a small form: what it counts, and what it makes of a figure."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.main import app
from bot.tools.bench import BenchPart
from bot.tools.bench import targets as module
from bot.tools.bench.steps import PLAIN_PAUSE_SECONDS
from bot.tools.bench.targets import TARGETS, Figure, TargetRow, TargetTable, targets


@pytest.mark.parametrize(
    ("figure", "measured", "within"),
    [
        (Figure.STEPS, 0.6, True),
        (Figure.STEPS, 0.601, False),
        (Figure.SWEEP_MODEL, 0, True),
        (Figure.SWEEP_MODEL, 1, False),
        (Figure.PLAIN, 1, None),
        (Figure.HELP, math.nan, None),
    ],
)
def test_a_figure_is_compared_with_its_target(figure: Figure, measured: float, within: bool | None) -> None:
    row = TargetRow(figure, measured)
    assert row.within is within
    assert TargetTable((TargetRow(Figure.IDLE_CPU, 0), row), {}, 1.0, 0.0).met is (within is not False)


@pytest.mark.rotating(parts=3)
@pytest.mark.device
async def test_calls_of_the_phone_and_the_model_are_counted() -> None:
    told: list[str] = []
    found = await targets(
        [BenchPart.STEPS, BenchPart.PLAIN, BenchPart.SWEEP, BenchPart.REPLY, BenchPart.IDLE, BenchPart.LIVE],
        say=lambda key, /, **_: told.append(key),
        times=1,
        idle=5,
        rest=1,
    )
    rows = {row.figure: row.measured for row in found.rows}
    assert list(rows) == [figure for figure in TARGETS if figure not in {Figure.OCR, Figure.HELP}]
    # What does not depend on how busy the machine is holds here, too.
    held = (Figure.PICTURE, Figure.SWEEP_MODEL, Figure.SWEEP_CALLS)
    assert {figure: rows[figure] <= (TARGETS[figure] or 0) for figure in held} == dict.fromkeys(held, True)
    assert rows[Figure.PICTURE] > 20
    assert rows[Figure.SWEEP_CALLS] > 0  # an observation, at least
    assert list(found.calls) == ["Launch", "Tap", "Tap in vain", "Type", "Back"]
    assert min(found.calls.values()) >= 3  # the act, and two pictures; an effect that comes late takes more of them
    assert min(found.calls.values()) <= rows[Figure.CALLS] <= max(found.calls.values()) < 15
    # On a machine with other work a reply takes longer, and loops have their turn more often meanwhile.
    assert 20 < rows[Figure.READS] <= 100
    assert 20 < rows[Figure.WRITES] <= 55
    assert rows[Figure.PLAIN] * rows[Figure.STEPS] > 5 * PLAIN_PAUSE_SECONDS  # it waits after each of five acts
    assert rows[Figure.LIVE] > 0
    assert 50 < rows[Figure.IDLE_MEMORY] < 1000
    assert {"stepping", "stepping_plain", "sweeping", "replying", "looking"} <= set(told)


def test_a_missed_target_is_shown_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(module.TARGETS, Figure.HELP, 100)
    done = CliRunner().invoke(app, ["bench", "--only", "help", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    (row,) = told["rows"]
    assert (row["figure"], row["target"], row["within"], told["met"]) == ("help", 100, True, True)
    assert 1 < row["measured"] < 10
    monkeypatch.setitem(module.TARGETS, Figure.HELP, 0.01)
    shown = CliRunner().invoke(app, ["bench", "--only", "help"])
    assert shown.exit_code == 1
    assert "≤ 0.01" in shown.output


def test_options_of_the_table_are_none_of_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["bench", "--only", "help", "growth"]).exit_code == 2
    assert CliRunner().invoke(app, ["bench", "--only", "all"]).exit_code == 2
