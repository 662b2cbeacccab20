"""The measurement itself, in a small form: it sees what it must see."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.main import app
from bot.tools.bench.growth import Level, leaks, soak
from bot.tools.bench.scale import asked, customer, problems, quantile, scale, task, world
from bot.tools.bench.served import RunSeen
from simulator.phone.phone import VirtualPhone
from simulator.phone.server import RunningPhone
from simulator.phone.world import Kind, Message, Side

pytestmark = [pytest.mark.rotating(parts=4), pytest.mark.device]


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [([3, 1, 2], 0.5, 2), ([1], 0.95, 1), (range(1, 101), 0.95, 95), ([1, 2, 3, 4], 0.5, 2)],
)
def test_quantile(values: Sequence[float], share: float, wanted: float) -> None:
    assert quantile(values, share) == wanted
    assert math.isnan(quantile([], share))


@pytest.mark.parametrize("phones", [2])
async def test_a_server_with_few_phones(phones: int) -> None:
    seen = await scale(phones, phones, settle=0)
    assert seen.problems == ()
    assert (seen.phones, seen.runs) == (phones, 2 * phones)
    assert 0 < seen.delay_p50 <= seen.delay_p95 < 30
    assert seen.runs_a_minute > 0
    assert 50 < seen.resident <= seen.peak
    assert seen.phones_cpu > 0
    assert seen.phones_resident > 50


def test_an_answer_on_another_phones_screen_is_seen() -> None:
    phones = [RunningPhone(VirtualPhone(world(number, 1)), number, "") for number in (0, 1)]
    assert phones[0].phone.size != phones[1].phone.size
    runs = []
    for number, phone in enumerate(phones):  # each sends what the other's customer asked for
        answer = Message(Side.ME, asked(1 - number).answer, Kind.TEXT, phone.phone.now())
        phone.phone.text_left(customer(number, 0), answer)
        done = {"serial": phone.address, "phone": phone.address, "status": "succeeded", "message": "", "delay": 0}
        runs.append(RunSeen.model_validate({**done, "task": task(number, 0)}))
    assert [found.partition(" ")[0] for found in problems(runs, phones)] == [phone.address for phone in phones]


def test_what_is_not_right_is_found() -> None:
    phone = RunningPhone(VirtualPhone(world(0, 1)), 1, "")
    run = RunSeen(
        serial=phone.address,
        task=task(0, 0),
        phone="other:1",
        status="failed",
        message="no",
        delay=None,
    )
    failed, elsewhere, unsent = problems([run], [phone])
    assert "failed no" in failed
    assert "other:1" in elsewhere
    assert unsent == f"{phone.address} sent {{}}"


def test_numbers_of_phones_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in ("", "0", "1,x", "1000"):
        assert CliRunner().invoke(app, ["bench", "scale", "--phones", wrong]).exit_code == 2


def test_what_a_run_leaves_is_told_table_by_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench", "growth", "--runs", "2", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    tables = {(one["file"], one["table"]): one for one in told["tables"]}
    assert (told["runs"], tables["phonedesk.sqlite3", "runs"]["rows"]) == (2, 1)
    assert tables["phonedesk.sqlite3", "pictures"]["rows"] >= 3
    assert tables["queue.sqlite3", "workflow_status"]["rows"] == 1
    assert 50_000 < told["bytes"] < 600_000, told
    assert told["bytes"] == pytest.approx(sum(one["bytes"] for one in tables.values()) + told["others"], abs=50)


async def test_a_short_soak_looks_at_what_the_server_holds() -> None:
    found = await soak(2, 1, warm_up=1, rest=0)  # too short for caches to be full: what has grown says nothing here
    assert found.problems == ()
    assert [level.runs for level in found.levels] == [1, 2, 3]
    assert all(50 < level.resident < 230 for level in found.levels), "182 to 192 MiB"
    assert all(level.descriptors > 10 and level.threads > 1 for level in found.levels)
    assert 10_000 < found.bytes_a_run < 1_000_000


def test_what_grows_in_a_soak_is_found() -> None:
    first = Level(50, 200.0, 40, 20, 0)
    assert leaks([first, Level(1050, 219.0, 43, 23, 10**9)]) == []
    memory, descriptors, threads = leaks([first, Level(1050, 221.0, 44, 24, 0)])
    assert memory == "memory: 200 MiB at first, 221 MiB at the end"
    assert (descriptors[:12], threads[:8]) == ("descriptors:", "threads:")


def test_one_look_does_not_decide_what_grows() -> None:
    def looks(*resident: float) -> list[Level]:
        return [Level(50 + 100 * number, held, 40, 20, 0) for number, held in enumerate(resident)]

    assert leaks(looks(200, 240, 235, 210, 230, 238, 245)) == []
    assert leaks(looks(200, 210, 220, 230, 240, 250, 260)) == ["memory: 210 MiB at first, 250 MiB at the end"]
