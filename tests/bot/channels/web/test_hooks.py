"""Incoming webhooks: messages that other systems sign. The stand-in's code signs them here, not the product's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from bot.channels.web.app import make_app, serving
from bot.channels.web.hooks import MAX_BODY, add_hooks
from bot.desk.actors import AccessDenied, Actor, BadRequest, NotFound, Role
from bot.desk.desk import Desk
from bot.desk.request_limits import RequestLimit
from bot.desk.webhooks_views import May
from storage.engine import Database
from storage.people import Audit
from storage.runs import Runs
from tests.support.busy import busy_shop
from tests.support.clock import Clock
from tests.support.shop import PHONE, QUESTION
from tests.support.webhook_receiver import signature_of

NOTHING: Mapping[str, str] = {}
TASK = {"task": "打开设置", "device": PHONE}


@dataclass
class Hooks:
    """The server of a busy shop, and a system that sends it messages."""

    url: str
    desk: Desk
    db: Database
    clock: Clock
    owner: Actor
    client: ClientSession

    async def secret(self, name: str, may: May, **rest: Any) -> str:
        return (await self.desk.incoming.add(self.owner, name, may, **rest))[0]

    async def send(
        self,
        name: str,
        secret: str,
        body: object,
        *,
        name_it: str = "msg_1",
        late: float = 0.0,
        headers: Mapping[str, str] = NOTHING,
    ) -> tuple[int, dict[str, Any]]:
        """Return status and body. ``late``: seconds by which the timestamp is behind now."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        at = str(int((self.db.now() - timedelta(seconds=late)).timestamp()))
        signed = {
            "webhook-id": name_it,
            "webhook-timestamp": at,
            "webhook-signature": f"v1a,other {signature_of(secret, name_it, at, raw)}",
        }
        all_headers = {key: value for key, value in {**signed, **headers}.items() if value}
        async with self.client.post(f"{self.url}/hooks/{name}", data=raw, headers=all_headers) as response:
            if response.status != 200:
                assert response.content_type == "application/problem+json"
            answered: dict[str, Any] = await response.json()
            return response.status, answered

    async def runs(self) -> int:
        return len(await Runs(self.db).find(limit=100))


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hooks]:
    async def ready() -> dict[str, bool]:
        return {}

    async with busy_shop(tmp_path) as busy:
        desk = Desk(replace(busy.desk.context, pace=RequestLimit(1000)))
        app = make_app(ready)
        add_hooks(app, desk)
        owner = await busy.shop.person(Role.OWNER)
        async with serving(app, "127.0.0.1", 0) as url, ClientSession() as client:
            yield Hooks(url, desk, busy.shop.db, busy.shop.clock, owner, client)


async def test_a_signed_task_starts_one_run_however_often_it_comes(hooks: Hooks) -> None:
    secret, before = await hooks.secret("shop", "run"), await hooks.runs()
    status, made = await hooks.send("shop", secret, TASK)
    assert status == 200
    run = await hooks.desk.runs.get(made["run"])
    assert run is not None
    assert (run.task, run.serial, run.by, run.chat) == ("打开设置", PHONE, "shop", None)
    for late in (0, -100, 100):  # the same bytes, or signed anew
        assert await hooks.send("shop", secret, TASK, late=late) == (200, made)
    hooks.clock.move(minutes=30)
    assert await hooks.send("shop", secret, TASK) == (200, made)
    status, problem = await hooks.send("shop", secret, {"task": "打开微信"})
    assert status == 409, "another task under the same id"
    assert problem["detail"].startswith("This webhook-id names another task.")
    assert await hooks.runs() == before + 1
    assert (await hooks.send("shop", secret, TASK, name_it="msg_2"))[1]["run"] != made["run"]
    other = await hooks.secret("other", "run")
    assert (await hooks.send("other", other, TASK))[1]["run"] != made["run"], "ids are each sender's own"


async def test_a_message_that_is_not_signed_does_and_tells_nothing(hooks: Hooks) -> None:
    secret, before = await hooks.secret("shop", "run"), await hooks.runs()
    wrong = await hooks.secret("other", "run")
    at = str(int(hooks.db.now().timestamp()))
    stolen = signature_of(secret, "msg_1", at, b'{"task": "x"}')
    refused = [
        await hooks.send("shop", wrong, TASK),
        await hooks.send("nobody", secret, TASK),
        await hooks.send("shop", secret, TASK, headers={"webhook-signature": ""}),
        await hooks.send("shop", secret, TASK, headers={"webhook-id": ""}),
        await hooks.send("shop", secret, TASK, headers={"webhook-timestamp": ""}),
        await hooks.send("shop", secret, TASK, headers={"webhook-id": "msg_3"}),
        await hooks.send("shop", secret, TASK, headers={"webhook-timestamp": str(int(at) + 1)}),
        await hooks.send("shop", secret, TASK, headers={"webhook-timestamp": "1e9"}),
        await hooks.send("shop", secret, TASK, headers={"webhook-timestamp": "9" * 400}),
        await hooks.send("shop", secret, TASK, headers={"webhook-signature": "v1," + "A" * 6000}),
        await hooks.send("shop", secret, TASK, headers={"webhook-signature": stolen}),
        await hooks.send("shop", secret, TASK, headers={"webhook-signature": stolen.replace("v1", "v2")}),
        await hooks.send("shop", secret, TASK, name_it="é"),
        await hooks.send("shop", secret, TASK, name_it="x" * 201),
    ]
    assert {status for status, _ in refused} == {401}
    assert len({json.dumps(said) for _, said in refused}) == 1, "nobody learns which names there are"
    assert await hooks.runs() == before
    noted = [row for row in await Audit(hooks.db).refused() if row.channel == "webhook"]
    assert 0 < len(noted) <= len(refused)


async def test_an_old_message_is_refused(hooks: Hooks) -> None:
    secret, before = await hooks.secret("shop", "run"), await hooks.runs()
    for late in (302, -302, 86400):
        status, said = await hooks.send("shop", secret, TASK, late=late)
        assert (status, "5 minutes" in said["detail"]) == (400, True)
    assert await hooks.runs() == before
    assert (await hooks.send("shop", secret, TASK, late=298))[0] == 200


async def test_a_question_is_answered_once(hooks: Hooks) -> None:
    secret = await hooks.secret("crm", "answer")
    wish = {"question": QUESTION.id, "choice": "skip"}
    assert (await hooks.send("crm", secret, {**wish, "choice": "none of these"}))[0] == 400
    assert (await hooks.send("crm", secret, {**wish, "text": "both"}))[0] == 400
    assert (await hooks.send("crm", secret, {"question": "nothing", "choice": "skip"}))[0] == 404
    status, said = await hooks.send("crm", secret, {"choice": 1})
    assert (status, said["detail"]) == (400, "question: Field required")
    done = (200, {"question": QUESTION.id, "answer": "skip"})
    assert await hooks.send("crm", secret, wish, name_it="msg_2") == done
    assert await hooks.send("crm", secret, wish, name_it="msg_2") == done
    assert (await hooks.send("crm", secret, {"question": QUESTION.id, "text": "另一个"}, name_it="msg_3"))[0] == 409
    view = await hooks.desk.questions.get(QUESTION.id)
    assert view is not None
    assert (view.answer, view.by) == ("skip", "crm")


async def test_it_may_do_what_it_was_made_for_and_nothing_else(hooks: Hooks) -> None:
    run, answer = await hooks.secret("shop", "run"), await hooks.secret("crm", "answer")
    before = await hooks.runs()
    assert (await hooks.send("crm", answer, TASK))[0] == 400
    assert (await hooks.send("shop", run, {"question": QUESTION.id, "choice": "skip"}))[0] == 400
    bodies: list[object] = [
        {**TASK, "policy": "free"},
        {"task": ""},
        {"task": "x\0"},
        [],
        b"",
        b"{",
        b"\xff",
        {"task": 1},
    ]
    for body in bodies:
        status, said = await hooks.send("shop", run, body)
        assert (status, said["type"]) == (400, "invalid_request"), body
    view = await hooks.desk.questions.get(QUESTION.id)
    assert view is not None
    assert view.open
    limited = await hooks.secret("limited", "run", phones=["S1"])
    assert (await hooks.send("limited", limited, TASK))[0] == 403
    assert await hooks.runs() == before


async def test_other_ways_to_send(hooks: Hooks) -> None:
    secret = await hooks.secret("shop", "run")
    status, said = await hooks.send("shop", secret, b"x" * (MAX_BODY + 1))
    assert (status, said["type"]) == (413, "too_large")
    for verb in ("GET", "PUT", "DELETE"):
        async with hooks.client.request(verb, f"{hooks.url}/hooks/shop") as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
            assert (await response.json())["type"] == "method_not_allowed"


async def test_the_old_secret_holds_for_a_day_after_a_rotation(hooks: Hooks) -> None:
    old = await hooks.secret("shop", "run")
    new, view = await hooks.desk.incoming.rotate(hooks.owner, "shop")
    assert view.old_secret_until == hooks.db.now() + timedelta(hours=24)
    assert (
        (await hooks.send("shop", old, TASK, name_it="a"))[0]
        == (await hooks.send("shop", new, TASK, name_it="b"))[0]
        == 200
    )
    hooks.clock.move(hours=24)
    assert (await hooks.send("shop", old, TASK, name_it="c"))[0] == 401
    assert (await hooks.send("shop", new, TASK, name_it="d"))[0] == 200
    await hooks.desk.incoming.remove(hooks.owner, "shop")
    assert (await hooks.send("shop", new, TASK, name_it="e"))[0] == 401


async def test_only_an_owner_makes_them(hooks: Hooks) -> None:
    for name in ("", "Shop", "a/b", "a" * 64, "-a", "商店", "a b"):
        with pytest.raises(BadRequest):
            await hooks.desk.incoming.add(hooks.owner, name, "run")
    await hooks.secret("shop", "run")
    with pytest.raises(BadRequest):
        await hooks.desk.incoming.add(hooks.owner, "shop", "answer")
    with pytest.raises(NotFound):
        await hooks.desk.incoming.add(hooks.owner, "b", "run", phones=["nobody-has-seen-it"])
    for call in (hooks.desk.incoming.rotate, hooks.desk.incoming.remove):
        with pytest.raises(NotFound):
            await call(hooks.owner, "nobody")
    for role in (Role.VIEWER, Role.OPERATOR):
        other = replace(hooks.owner, role=role)
        for asked in (
            hooks.desk.incoming.add(other, "b", "run"),
            hooks.desk.incoming.all(other),
            hooks.desk.incoming.rotate(other, "shop"),
            hooks.desk.incoming.remove(other, "shop"),
        ):
            with pytest.raises(AccessDenied):
                await asked
    (view,) = await hooks.desk.incoming.all(hooks.owner)
    assert (view.name, view.may, list(view.phones)) == ("shop", "run", [])
