"""Serving a virtual phone: the adb side, and a port to look into it and to steer it.

The state port, on 127.0.0.1 (bodies are JSON; faults in a body are answered as 400 ``{"error": …}``)::

    GET  /state                                         what really happened: ``report.Report``
    GET  /screen.png                                    the screen as it is now
    POST /message  {"contact", "text"[, "kind"]}        the customer writes
    POST /recall   {"contact"[, "text"]}                the customer takes a message back
    POST /colleague {"contact", "text"}                 our account answers from another device
    POST /fault    {"name"[, "value"]}                  a fault begins, or with false ends
    POST /tree     {"mode"}                             the accessibility tree's mode
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.phone.adbd import AdbdServer, Auth, ServiceCall
from simulator.phone.phone import VirtualPhone
from simulator.phone.png import as_png
from simulator.phone.scenario import Scenario, TreeMode
from simulator.phone.scenario_file import load_scenario
from simulator.phone.world import Kind

HOST = "127.0.0.1"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MessageBody(_Body):
    contact: str
    text: str = Field(default="", max_length=20_000)
    kind: Kind = Kind.TEXT


class RecallBody(_Body):
    contact: str
    text: str = ""


class ColleagueBody(_Body):
    contact: str
    text: str = Field(min_length=1, max_length=20_000)


class FaultBody(_Body):
    name: str
    value: bool | int | float | str = True


class TreeBody(_Body):
    mode: TreeMode


Body = TypeVar("Body", bound=_Body)


@dataclass(frozen=True, slots=True)
class RunningPhone:
    """``calls``: the newest services that hosts have opened on it, the latest last."""

    phone: VirtualPhone
    adb_port: int
    state_url: str  # "http://127.0.0.1:PORT"
    calls: Sequence[ServiceCall] = ()

    @property
    def address(self) -> str:
        """The argument for ``adb connect``."""
        return f"{HOST}:{self.adb_port}"


def state_app(phone: VirtualPhone) -> web.Application:
    """Return the web application of one phone's state and control port."""
    app = web.Application(middlewares=[_only_here])
    app.router.add_get("/state", lambda _: _json(phone.report()))
    app.router.add_get("/screen.png", lambda _: _screen(phone))
    app.router.add_post(
        "/message", _control(MessageBody, lambda body: phone.receive(body.contact, body.text, body.kind.value))
    )
    app.router.add_post("/recall", _control(RecallBody, lambda body: phone.recall(body.contact, body.text)))
    app.router.add_post("/colleague", _control(ColleagueBody, lambda body: phone.colleague(body.contact, body.text)))
    app.router.add_post("/fault", _control(FaultBody, lambda body: phone.set_fault(body.name, body.value)))
    app.router.add_post("/tree", _control(TreeBody, lambda body: phone.set_tree(body.mode.value)))
    return app


async def _json(data: object, status: int = 200) -> web.Response:
    return web.json_response(data, status=status, dumps=lambda value: json.dumps(value, ensure_ascii=False))


@web.middleware
async def _only_here(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse pages of a browser on this machine: no foreign host name, no form's content type may steer the phone."""
    name = request.host.rpartition(":")[0] or request.host
    if name not in (HOST, "localhost"):
        return await _json({"error": f"this port answers as {HOST} only"}, 403)
    if request.method == "POST" and request.content_type != "application/json":
        return await _json({"error": "send JSON, with the header Content-Type: application/json"}, 400)
    return await handler(request)


async def _screen(phone: VirtualPhone) -> web.Response:
    picture = await phone.shown()
    return web.Response(body=await asyncio.to_thread(as_png, picture), content_type="image/png")


def _control(model: type[Body], act: Callable[[Body], None]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return a handler that reads a body, acts on it, and reports what is wrong with it."""

    async def handle(request: web.Request) -> web.Response:
        try:
            act(model.model_validate_json(await request.read()))
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}" for item in error.errors()]
            allowed = ", ".join(model.model_fields)
            return await _json({"error": "; ".join(problems), "fields": allowed}, 400)
        except (LookupError, ValueError) as error:
            return await _json({"error": str(error.args[0]) if error.args else str(error)}, 400)
        return await _json({"ok": True})

    return handle


@asynccontextmanager
async def serve(
    scenario: Scenario | Path | None = None,
    port: int = 0,
    state_port: int = 0,
    *,
    auth: Auth = "none",
    phone: VirtualPhone | None = None,
) -> AsyncIterator[RunningPhone]:
    """Serve one phone on 127.0.0.1: adbd on ``port``, the state server on ``state_port`` (0: any free one).

    scenario: may be a file; None is the shipped default.
    phone: an existing phone, which is served as it is.

    Raises ConfigInvalid if the scenario is wrong, OSError if a port is taken.
    """
    if phone is None:
        phone = VirtualPhone(load_scenario(scenario) if isinstance(scenario, Path) else scenario)
    adbd = AdbdServer(phone, port=port, auth=auth)
    runner = web.AppRunner(state_app(phone), access_log=None, shutdown_timeout=1.0)
    try:
        await adbd.start()
        phone.link = adbd
        adbd.follow(phone.faults)
        await runner.setup()
        site = web.TCPSite(runner, HOST, state_port)
        await site.start()
        yield RunningPhone(phone, adbd.port, f"http://{HOST}:{site.port}", adbd.calls)
    finally:
        phone.link = None
        await runner.cleanup()
        await adbd.close()


async def run_virtual_phone(
    port: int, phone: VirtualPhone, state_port: int, auth: Auth, *, up: Callable[[RunningPhone], object]
) -> None:
    """Serve until cancelled; ``up`` is called once the phone listens. Port 0: any free one."""
    async with serve(None, port, state_port, auth=auth, phone=phone) as running:
        up(running)
        await asyncio.Event().wait()
