"""The virtual phone as an iPhone: a stand-in for WebDriverAgent's server on it.

It has the endpoints that ``agent_core.devices.wda`` uses, and refuses every other, wrong bodies, ended sessions and
places off the screen, in WebDriverAgent's own shapes (appium/WebDriverAgent 16.7). It is stricter than the real one,
which ignores fields that it does not know, and touches places off the screen.
"""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from aiohttp import web
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.phone.apps.launcher import Launcher
from simulator.phone.phone import VirtualPhone
from simulator.phone.png import as_png
from simulator.phone.port import InputRefused, TreeFailure
from simulator.phone.scenario import Faults, Scenario
from simulator.phone.scenario_file import load_scenario
from simulator.phone.server import HOST, state_app
from simulator.phone.wda.screen import Screen
from simulator.phone.wda.source import SPRINGBOARD, page_source
from simulator.phone.wda.touches import BadTouchError, Finger, carry_out, strokes
from simulator.phone.widgets import TextField

# The bundle ids of the virtual phone's apps on iOS.
BUNDLE_IDS = {
    "com.tencent.mobileqq": "com.tencent.mqq",
    "com.tencent.mm": "com.tencent.xin",
    "com.eg.android.AlipayGphone": "com.alipay.iphoneclient",
    "com.android.settings": "com.apple.Preferences",
}
_PACKAGES = {bundle: package for package, bundle in BUNDLE_IDS.items()}
IOS = "17.5.1"
NO_KEYBOARD = "The on-screen keyboard must be present to send keys"
NOT_UNLOCKED = "Timed out while waiting until the screen gets unlocked"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Nothing(_Body):
    pass


class _Capabilities(_Body):
    alwaysMatch: dict[str, bool | float | str]  # noqa: N815 - W3C's name


class _NewSession(_Body):
    capabilities: _Capabilities


class _Settings(_Body):
    settings: dict[str, bool | float | str]


class _App(_Body):
    bundleId: str  # noqa: N815 - WebDriverAgent's name


class _Launch(_App):
    shouldWaitForQuiescence: bool = True  # noqa: N815


class _Url(_App):
    url: str


class _Keys(_Body):
    value: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class _Actions(_Body):
    actions: Annotated[list[Finger], Field(min_length=1, max_length=1)]


class WdaError(Exception):
    """An answer with an error: its HTTP status and W3C code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True, slots=True)
class WdaCall:
    method: str
    path: str
    body: object


Handle = Callable[[Any], Awaitable[object]]
Model = TypeVar("Model", bound=_Body)


class WdaServer:
    """One phone's WebDriverAgent, on 127.0.0.1.

    passcode: the lock screen asks for one. state_of_missing: the state that ``/wda/apps/state`` reports for a missing
    app.
    """

    def __init__(self, phone: VirtualPhone, *, port: int = 0) -> None:
        self.phone = phone
        self.screen = Screen(phone.size, 2 if phone.size[0] % 3 or phone.size[1] % 3 else 3)
        self.port = port
        self.calls: list[WdaCall] = []
        self.session = ""
        self.passcode = False
        self.state_of_missing = 0
        self.untrusted: set[str] = set()  # bundle ids whose developer is not trusted
        self._fields: dict[str, TextField] = {}
        self._refused = False
        self._runner: web.AppRunner | None = None
        self._encoded: tuple[Image.Image, str] | None = None

    async def start(self) -> None:
        """Start to listen. Raises OSError if the port is taken."""
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port)
        await site.start()
        self.port = site.port

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def end_session(self) -> None:
        """End the session, as a restart of WebDriverAgent does."""
        self.session = ""

    # -- as the phone's link, for the fault ``dropped``

    def drop(self) -> None:
        """Cut the connections that are open."""
        server = self._runner.server if self._runner is not None else None
        for connection in list(server.connections) if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    def follow(self, faults: Faults, /) -> None:
        self._refused = faults.dropped or faults.offline or faults.unauthorized

    # -- answering

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._refused:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()  # to nobody
        try:
            value, status = await self._answer(request), 200
        except WdaError as error:
            value = {"error": error.code, "message": error.message, "traceback": ""}
            status = error.status
        data = {"value": value, "sessionId": self.session or None}
        return web.json_response(data, status=status, content_type="application/json")

    async def _answer(self, request: web.Request) -> object:
        handle, model = self._route(request.method, request.path)
        body: object = None
        if request.method == "POST":
            try:
                body = json.loads(await request.read())
            except ValueError:
                raise WdaError(400, "invalid argument", "the body is no JSON") from None
        elif request.can_read_body:
            raise WdaError(400, "invalid argument", "a GET has no body")
        self.calls.append(WdaCall(request.method, request.path, body))
        try:
            if request.method == "GET":
                return await handle(request)
            return await handle(model.model_validate(body))
        except ValidationError as error:
            words = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise WdaError(400, "invalid argument", words) from None
        except (InputRefused, BadTouchError) as error:
            raise WdaError(500, "unknown error", str(error)) from None

    def _route(self, method: str, path: str) -> tuple[Handle, type[_Body]]:
        found = _ANYWHERE.get((method, path))
        if found is None and path.startswith("/session/"):
            session, _, rest = path.removeprefix("/session/").partition("/")
            element = ""
            if rest.startswith("element/") and rest.endswith("/clear"):
                element, rest = rest.removeprefix("element/").removesuffix("/clear"), "element/:uuid/clear"
            found = _IN_SESSION.get((method, f"/{rest}"))
            if found is not None and (not self.session or session != self.session):
                raise WdaError(404, "invalid session id", "Session does not exist")
            if found is not None and element:
                return (lambda body: self._clear(element, body)), _Nothing
        if found is None:
            raise WdaError(404, "unknown command", f"Unhandled endpoint: {path} with parameters {{}}")
        name, model = found
        return getattr(self, name), model

    # -- without a session

    async def _status(self, _: web.Request) -> object:
        return {
            "ready": True,
            "message": "WebDriverAgent is ready to accept commands",
            "state": "success",
            "os": {"name": "iOS", "version": IOS, "sdkVersion": "17.5", "testmanagerdVersion": 65535},
            "ios": {"ip": HOST},
            "build": {"time": "Aug 22 2026 19:44:57", "productBundleIdentifier": "com.facebook.WebDriverAgentRunner"},
            "device": "iphone",
        }

    async def _new_session(self, _: _NewSession) -> object:
        self.session = str(uuid.uuid4()).upper()
        self._fields.clear()
        return {"sessionId": self.session, "capabilities": {"device": "iphone", "sdkVersion": IOS}}

    async def _screenshot(self, _: web.Request) -> object:
        picture = await self.phone.picture()
        if self._encoded is None or self._encoded[0] is not picture or self.screen.turned:
            self._encoded = (picture, await asyncio.to_thread(_base64, self.screen.picture(picture)))
        return self._encoded[1]

    async def _window_size(self, _: web.Request) -> object:
        width, height = self.screen.window[2:]
        return {"width": width, "height": height}

    async def _scale(self, _: web.Request) -> object:
        width, height = (edge / self.screen.scale for edge in self.screen.size)
        return {
            "screenSize": {"width": width, "height": height},
            "statusBarSize": {"width": width, "height": 30},
            "scale": self.screen.scale,
        }

    async def _locked(self, _: web.Request) -> object:
        return self._is_locked()

    def _is_locked(self) -> bool:
        screen = self.phone.screen()
        return screen.locked or not screen.awake

    async def _active_app(self, _: web.Request) -> object:
        app = self.phone.apps.get(package := self.phone.window().package or "")
        apart = app is None or package == Launcher.package
        bundle = SPRINGBOARD if apart else BUNDLE_IDS.get(package, package)
        name = app.label if app is not None else ""
        return {"pid": 4321, "bundleId": bundle, "name": name, "processArguments": {"args": [], "env": {}}}

    async def _device_info(self, _: web.Request) -> object:
        return {
            "currentLocale": "zh_CN",
            "timeZone": "Asia/Shanghai",
            "name": self.phone.scenario.phone.model,
            "model": "iPhone",
            "uuid": "00000000-0000-4000-8000-000000000001",
            "userInterfaceIdiom": 0,
            "userInterfaceStyle": "light",
            "isSimulator": False,
            "thermalState": 0,
        }

    async def _source(self, request: web.Request) -> object:
        if request.query.get("format") != "json":
            raise WdaError(400, "invalid argument", "Unknown source format")
        try:
            nodes = await self.phone.tree()
        except TreeFailure:
            raise WdaError(500, "unknown error", "Cannot get 'json' source of the current application") from None
        return page_source(self.phone, self.screen, nodes)

    async def _homescreen(self, _: _Nothing) -> object:
        if not self._is_locked():
            await self.phone.key("HOME")
        return None

    async def _unlock(self, _: _Nothing) -> object:
        if self.passcode and self._is_locked():
            raise WdaError(500, "unknown error", f'Error Domain=com.facebook.WebDriverAgent Code=1 "{NOT_UNLOCKED}"')
        await self.phone.key("WAKEUP")
        if self.phone.screen().locked:
            await self.phone.key("MENU")
        return None

    # -- in the session

    async def _settings(self, body: _Settings) -> object:
        return body.settings

    async def _battery(self, _: web.Request) -> object:
        return {"level": self.phone.battery["level"] / 100, "state": 2}

    async def _launch(self, body: _Launch) -> object:
        bundle, package = body.bundleId, _package(body.bundleId)
        if package not in self.phone.apps:
            raise WdaError(400, "invalid argument", _not_found(bundle))
        if bundle in self.untrusted:
            raise WdaError(400, "invalid argument", _not_trusted(bundle))
        if self._is_locked():
            raise WdaError(400, "invalid argument", f"The request to open {bundle!r} failed. Reason: Locked")
        await self.phone.launch(package)
        return None

    async def _terminate(self, body: _App) -> object:
        running = self._state_of(body.bundleId) > 1
        await self.phone.force_stop(_package(body.bundleId))
        return running

    async def _state(self, body: _App) -> object:
        return self._state_of(body.bundleId)

    def _state_of(self, bundle: str) -> int:
        """Return the XCUIApplicationState: 1 not running, 3 in the background, 4 in front."""
        package = _package(bundle)
        if package not in self.phone.apps:
            return self.state_of_missing
        if self.phone.window().package == package:
            return 4
        return 3 if package in self.phone.report()["opened"] else 1

    async def _url(self, body: _Url) -> object:
        if not await self.phone.open_url(body.url, _PACKAGES.get(body.bundleId, "?")):
            raise WdaError(500, "unknown error", f"Failed to open {body.url[:80]} in {body.bundleId}")
        return None

    async def _actions(self, body: _Actions) -> object:
        for stroke in list(strokes(body.actions[0].actions, self.screen)):
            await carry_out(stroke, self.phone, self.screen)
        return None

    async def _keys(self, body: _Keys) -> object:
        if not self.phone.keyboard_shown():
            raise WdaError(400, "invalid element state", NO_KEYBOARD)
        for part in _runs("".join(body.value)):
            if self.phone.faults.stuck_keyboard:
                break
            if part in {"\n", "\b"}:
                await self.phone.key("ENTER" if part == "\n" else "DEL")
            else:
                self.phone.insert(part)
        return None

    async def _active_element(self, _: web.Request) -> object:
        field = self.phone.focus
        if field is None or not self.phone.keyboard_shown():
            raise WdaError(404, "no such element", "unable to find an element")
        name = str(uuid.uuid4()).upper()
        self._fields[name] = field
        return {"element-6066-11e4-a52e-4f735466cecf": name, "ELEMENT": name}

    async def _clear(self, name: str, _: _Nothing) -> object:
        field = self._fields.get(name)
        if field is None or field is not self.phone.focus:
            raise WdaError(404, "stale element reference", f"The element {name} is not attached any more")
        while field.text and not self.phone.faults.stuck_keyboard:
            await self.phone.key("DEL")
        return None


_ANYWHERE: dict[tuple[str, str], tuple[str, type[_Body]]] = {
    ("GET", "/status"): ("_status", _Nothing),
    ("GET", "/screenshot"): ("_screenshot", _Nothing),
    ("GET", "/window/size"): ("_window_size", _Nothing),
    ("GET", "/wda/screen"): ("_scale", _Nothing),
    ("GET", "/wda/locked"): ("_locked", _Nothing),
    ("GET", "/wda/activeAppInfo"): ("_active_app", _Nothing),
    ("GET", "/wda/device/info"): ("_device_info", _Nothing),
    ("GET", "/source"): ("_source", _Nothing),
    ("POST", "/session"): ("_new_session", _NewSession),
    ("POST", "/wda/homescreen"): ("_homescreen", _Nothing),
    ("POST", "/wda/unlock"): ("_unlock", _Nothing),
}
_IN_SESSION: dict[tuple[str, str], tuple[str, type[_Body]]] = {
    ("POST", "/appium/settings"): ("_settings", _Settings),
    ("GET", "/wda/batteryInfo"): ("_battery", _Nothing),
    ("POST", "/wda/apps/launch"): ("_launch", _Launch),
    ("POST", "/wda/apps/terminate"): ("_terminate", _App),
    ("POST", "/wda/apps/state"): ("_state", _App),
    ("POST", "/url"): ("_url", _Url),
    ("POST", "/actions"): ("_actions", _Actions),
    ("POST", "/wda/keys"): ("_keys", _Keys),
    ("GET", "/element/active"): ("_active_element", _Nothing),
    ("POST", "/element/:uuid/clear"): ("_clear", _Nothing),
}


def _package(bundle: str) -> str:
    """Return the package of an app on the virtual phone. Apps without a bundle id above have the same name."""
    return "" if bundle in (*BUNDLE_IDS, Launcher.package) else _PACKAGES.get(bundle, bundle)


def _base64(picture: Image.Image) -> str:
    return base64.b64encode(as_png(picture)).decode()


def _runs(text: str) -> list[str]:
    """Split a text: each return and backspace by itself, the characters between them together."""
    pieces: list[str] = []
    for char in text:
        if pieces and char not in "\n\b" and pieces[-1] not in {"\n", "\b"}:
            pieces[-1] += char
        else:
            pieces.append(char)
    return pieces


def _not_found(bundle: str) -> str:
    return (
        f'Error Domain=FBSOpenApplicationServiceErrorDomain Code=4 "The request to open "{bundle}" failed." '
        "UserInfo={BSErrorCodeDescription=InvalidRequest, NSUnderlyingError=0x283546b50 {Error "
        "Domain=FBSOpenApplicationErrorDomain Code=4 UserInfo={BSErrorCodeDescription=NotFound, "
        f'NSLocalizedFailureReason=Application info provider (FBSApplicationLibrary) returned nil for "{bundle}"}}}}}}'
    )


def _not_trusted(bundle: str) -> str:
    return (
        f'Error Domain=FBSOpenApplicationServiceErrorDomain Code=1 "The request to open "{bundle}" failed." '
        f"UserInfo={{NSLocalizedFailureReason=Unable to launch {bundle} because it has an invalid code signature, "
        "inadequate entitlements or its profile has not been explicitly trusted by the user.}"
    )


@dataclass(frozen=True, slots=True)
class RunningIPhone:
    phone: VirtualPhone
    wda: WdaServer
    state_url: str  # "http://127.0.0.1:PORT"

    @property
    def address(self) -> str:
        """The value for the setting."""
        return f"{HOST}:{self.wda.port}"


@asynccontextmanager
async def serve_iphone(
    scenario: Scenario | Path | None = None, port: int = 0, state_port: int = 0, *, phone: VirtualPhone | None = None
) -> AsyncIterator[RunningIPhone]:
    """Serve one iPhone on 127.0.0.1: WebDriverAgent on ``port``, the state server on ``state_port``; as
    ``server.serve``.
    """
    if phone is None:
        phone = VirtualPhone(load_scenario(scenario) if isinstance(scenario, Path) else scenario)
    wda = WdaServer(phone, port=port)
    runner = web.AppRunner(state_app(phone), access_log=None, shutdown_timeout=1.0)
    try:
        await wda.start()
        phone.link = wda
        wda.follow(phone.faults)
        await runner.setup()
        site = web.TCPSite(runner, HOST, state_port)
        await site.start()
        yield RunningIPhone(phone, wda, f"http://{HOST}:{site.port}")
    finally:
        phone.link = None
        await runner.cleanup()
        await wda.close()


async def run_virtual_iphone(
    port: int, phone: VirtualPhone, state_port: int, *, up: Callable[[RunningIPhone], object]
) -> None:
    """Serve until cancelled; ``up`` is called once the phone listens. Port 0: any free one."""
    async with serve_iphone(None, port, state_port, phone=phone) as running:
        up(running)
        await asyncio.Event().wait()
