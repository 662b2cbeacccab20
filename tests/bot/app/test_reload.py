"""Settings that are changed while a process runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from agent_core.errors import ConfigInvalid
from bot.app import logs
from bot.app.core import Core, open_core
from bot.app.models import ClientRotation
from bot.app.reload import Reloader, _closes, renew, taken_over
from bot.app.settings.files import CONFIG_FILE
from bot.app.settings.loading import load
from bot.app.settings.names import LIVE, names
from knowledge.dify import DifyKnowledge
from storage.tables import audit
from tests.support.database import empty_sqlite
from tests.support.environment import without_settings

TOKEN = "a-secret-of-the-knowledge-base"


@pytest.fixture
async def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Core]:
    without_settings(monkeypatch, tmp_path)
    (tmp_path / "data").mkdir()
    await empty_sqlite(tmp_path / "data" / "phonedesk.sqlite3")
    async with open_core(load()) as made:
        yield made


def write(text: str) -> None:
    Path(CONFIG_FILE).write_text(text)


async def looks(reloader: Reloader) -> None:
    """As often as it takes: the first sees that something is new, the second that it is no more being written."""
    await reloader.look()
    await reloader.look()


async def test_the_next_attempt_works_with_what_was_changed_and_one_at_work_with_what_it_has(core: Core) -> None:
    reloader = Reloader(core, load)
    model, knowledge, reader = core.model, core.knowledge, core.reader
    told: list[str] = []
    core.followers.append(lambda settings: told.append(settings.model.name))
    async with core.client_rotation.used():
        write('[model]\nname = "next"\nbase_url = "http://127.0.0.1:9/v1"\n[run]\npart_chars = 99\n[web]\nport = 1\n')
        with capture_logs() as lines:
            await looks(reloader)
            await looks(reloader)
        assert (core.settings.model.name, core.model.name, core.settings.run.part_chars) == ("next", "next", 99)
        assert core.settings.web.port == 8737  # it listens where it listened
        assert (told, core.knowledge is knowledge, core.reader is reader) == (["next"], True, False)
        assert model.name == "autoglm-phone-9b"
        assert open_still(model)
    assert not open_still(model)
    assert open_still(core.model)
    assert [(line["event"], line["names"]) for line in lines] == [
        ("settings_taken_over", ("model.base_url", "model.name", "run.part_chars")),
        ("settings_need_restart", ("web.port",)),
    ]
    async with core.db.read() as connection:
        (row,) = (await connection.execute(audit.select())).mappings()
    assert (row["command"], row["detail"]) == (
        "settings",
        {"changed": ["model.base_url", "model.name", "run.part_chars"]},
    )


def open_still(model: object) -> bool:
    return not model._endpoint._http.is_closed  # type: ignore[attr-defined]  # nothing else tells it


async def test_what_is_wrong_is_told_once_and_the_old_stays(core: Core) -> None:
    reloader = Reloader(core, load)
    model, store = core.model, core.store
    with capture_logs() as lines:
        write("[model]\ntop_p = 7\n")
        await looks(reloader)
        await reloader.look(asked=True)
        assert "model.top_p" in reloader.problem
        assert (core.model is model, core.settings.model.top_p) == (True, 0.85)
        assert await reloader.probe.ask(False) == reloader.problem
        write('[knowledge]\nprovider = "embedded,dify"\n')  # each value is right, but it cannot be built
        await looks(reloader)
        assert "dify" in reloader.problem
        assert core.settings.knowledge.provider == "embedded"
        rest = f'base_url = "http://127.0.0.1:9"\ndataset_id = "d"\ntoken = "{TOKEN}"\n'
        write(f'[knowledge]\nprovider = "embedded,dify"\n{rest}')
        await looks(reloader)
    assert reloader.problem == ""
    assert core.knowledge.name == "embedded,dify"
    assert await store.count() == 0
    assert len(_closes(core, core.knowledge)) == 1  # not the shop's own entries: others have them, too
    assert logs.mask(f"said {TOKEN}") == "said <secret>"
    events = [line["event"] for line in lines]
    assert events == ["settings_refused", "settings_refused", "settings_usable_again", "settings_taken_over"]
    assert TOKEN not in str(lines)


async def test_what_was_built_is_closed_where_the_rest_cannot_be(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[DifyKnowledge] = []
    close = DifyKnowledge.close

    async def told(base: DifyKnowledge) -> None:
        closed.append(base)
        await close(base)

    monkeypatch.setattr(DifyKnowledge, "close", told)
    write(f'[knowledge]\nprovider = "dify"\nbase_url = "http://127.0.0.1:9"\ndataset_id = "d"\ntoken = "{TOKEN}"\n')
    new = load()
    wrong = new.model_copy(update={"model": new.model.model_copy(update={"base_url": ""})})
    knowledge, reader = core.knowledge, core.reader
    with pytest.raises(ConfigInvalid, match="BASE_URL"):
        await renew(core, wrong)
    assert (len(closed), core.knowledge is knowledge, core.reader is reader) == (1, True, True)
    await renew(core, new)
    assert (core.knowledge.name, len(closed)) == ("dify", 1)


async def test_what_is_still_being_written_and_what_says_the_same_is_left(core: Core) -> None:
    reloader = Reloader(core, load)
    write("[model]\nna")
    await reloader.look()
    write('[model]\nname = "whole"\n')
    await reloader.look()
    assert (core.model.name, reloader.problem) == ("autoglm-phone-9b", "")
    await reloader.look()
    assert core.model.name == "whole"
    model = core.model
    Path(CONFIG_FILE).touch()
    await looks(reloader)
    Path(".env").write_text("PHONEDESK_LOG_LEVEL=error\n")
    await looks(reloader)
    assert (core.model is model, core.settings.log_level) == (True, "error")
    assert not structlog.get_logger().is_enabled_for(30)


async def test_each_refused_content_is_told_and_a_file_that_is_gone_changes_nothing(core: Core) -> None:
    write('[model]\nname = "kept"\n')
    reloader = Reloader(core, load)
    await reloader.look(asked=True)
    with capture_logs() as lines:
        for temperature in (0.1, 0.2):  # the same mistake stands in both
            write(f'[model]\nname = "kept"\ntemperature = {temperature}\n[knowledge]\nprovider = "dify"\n')
            await looks(reloader)
            await reloader.look(asked=True)
        Path(CONFIG_FILE).unlink()
        await looks(reloader)
        assert core.model.name == "kept"
        assert "not there any more" in reloader.problem
        write('[model]\nname = "new"\n')
        await looks(reloader)
    assert core.model.name == "new"
    events = [line["event"] for line in lines]
    assert events == ["settings_refused"] * 3 + ["settings_usable_again", "settings_taken_over"]


async def test_the_watch_itself_sees_a_change(core: Core) -> None:
    reloader = Reloader(core, load, look_seconds=0.01)
    write('[model]\nname = "before-the-start"\n')
    await reloader.start()
    try:
        for name in ("before-the-start", "after-it"):
            write(f'[model]\nname = "{name}"\n')
            waited = 0
            while core.model.name != name:
                await asyncio.sleep(0.01)
                waited += 1
                assert waited < 500
    finally:
        await reloader.stop()


async def test_clients_are_closed_when_the_last_who_may_have_them_is_done() -> None:
    client_rotation, closed = ClientRotation(), list[str]()

    async def close_a() -> None:
        closed.append("a")
        raise OSError("it was away already")

    async def close_b() -> None:
        closed.append("b")

    await client_rotation.replaced([])
    async with client_rotation.used():
        await client_rotation.replaced([close_a])
        async with client_rotation.used():
            await client_rotation.replaced([close_b])
            assert closed == []
        assert closed == []  # whoever came first may have both
    assert closed == ["a", "b"]
    async with client_rotation.used():
        await client_rotation.replaced([close_b])
        await client_rotation.close()
    assert closed == ["a", "b", "b"]


def test_what_needs_a_restart_is_not_taken_over_with_the_rest() -> None:
    old = load()
    new = old.model_copy(
        update={
            "timezone": "Asia/Tokyo",
            "device": old.device.model_copy(update={"names": {"S1": "Counter"}, "serial": "S2"}),
            "sweep": old.sweep.model_copy(update={"cool_down_seconds": 9.0}),  # a watch keeps what it began with
        }
    )
    change = taken_over(old, new)
    needs_restart = {"timezone", "device.serial", "sweep.cool_down_seconds"}
    assert (change.live, set(change.waiting)) == (("device.names",), needs_restart)
    assert change.settings.sweep == old.sweep
    device = change.settings.device
    assert (device.names, device.serial) == ({"S1": "Counter"}, old.device.serial)
    known = {name.path[:length] for name in names() for length in (1, 2)}
    assert known >= LIVE


async def test_a_new_proxy_of_the_models_is_taken_over_by_the_chooser_too(core: Core) -> None:
    reloader = Reloader(core, load)
    chooser = '[chooser]\nbase_url = "http://choosing.example/v1"\nname = "c"\n'
    write(chooser)
    await looks(reloader)
    first = core.chooser
    write(f'{chooser}[model]\nproxy = "socks5://127.0.0.1:9"\n')
    await looks(reloader)
    assert first is not None
    assert core.chooser is not None
    assert core.chooser is not first
    assert core.settings.model_proxy.route("http://choosing.example").proxy == "socks5://127.0.0.1:9"
