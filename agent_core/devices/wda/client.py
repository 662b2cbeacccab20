"""WebDriverAgent's HTTP interface, as far as a phone needs it.

WebDriverAgent (WDA) is a test runner on the iPhone that serves W3C WebDriver and its own endpoints under ``/wda``. Each
answer is JSON with ``value`` and ``sessionId``, the session that is active now; an error's value has ``error``,
``message`` and ``traceback``. Source of the paths, shapes and errors: ``WebDriverAgentLib/Commands`` and ``Routing`` of
appium/WebDriverAgent 16.7.

WDA has one session at a time: creating one ends the previous one. Most reads need no session. Actions join the current
session; ``take_session`` makes a new one, and from then on the phone refuses what another owner still sends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import httpx2
import structlog

from agent_core.errors import CommandFailed, DeviceError, DeviceOffline, ScreenshotFailed
from agent_core.http import REQUEST_ERRORS
from agent_core.retry import Sleep, with_retries

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
MAX_ANSWER = 96 * 1024 * 1024  # bytes; the picture of an iPad is 20 MB as base64
SESSION_LOST = "invalid session id"
# phonedesk waits until the screen rests itself; WDA would wait up to 10 s and 2 s before each act.
_SETTINGS = {"waitForIdleTimeout": 0, "animationCoolOffTimeout": 0}

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class WdaAnswer:
    """An answer of WDA. ``session``: the id of WDA's session at that moment; "" if it has none."""

    value: object
    session: str


_Ask = Callable[[], Awaitable[WdaAnswer]]


class WdaRefusal(CommandFailed):
    """WDA answered with an error. ``code`` is its W3C name; ``session`` as in ``WdaAnswer``."""

    def __init__(self, code: str, words: str, session: str) -> None:
        super().__init__(f"WebDriverAgent refused: {words}", key="wda_refused", why=words)
        self.code, self.words, self.session = code, words, session


class WdaClient:
    """Calls to the WDA at one address. ``round_trips`` counts the requests that were sent."""

    def __init__(self, host: str, port: int, *, sleep: Sleep = asyncio.sleep) -> None:
        self.place = f"{host}:{port}"
        self.round_trips = 0
        self._sleep = sleep
        self._gone = False  # the call before could not reach it in all the tries that there are
        self._session = ""
        self._opening = asyncio.Lock()
        # Phones are never asked through a proxy: the local network or a cable leads to them.
        self._http = httpx2.AsyncClient(
            base_url=f"http://{f'[{host}]' if ':' in host else host}:{port}",
            verify=False,  # WDA speaks only plain HTTP; reading the certificates would take 20 ms
            trust_env=False,
            follow_redirects=False,
        )

    # -- reads

    async def read(self, path: str, *, seconds: float = READ_SECONDS) -> object:
        """Make a read that needs no session; it is retried by the retry table."""
        return (await self._again(lambda: self._call("GET", path, None, seconds))).value

    async def status(self, *, seconds: float = READ_SECONDS) -> WdaAnswer:
        """Read the state of WDA, and its session; once, without retries."""
        return await self._call("GET", "/status", None, seconds)

    async def read_in_session(self, path: str, body: Json | None = None) -> object:
        """Make a read that needs a session. If the session has ended, ask once more in a new one.

        body: of a POST; None is a GET.
        """

        async def ask() -> WdaAnswer:
            try:
                return await self._in(await self.session(), path, body, READ_SECONDS)
            except WdaRefusal as error:
                if error.code != SESSION_LOST:
                    raise
            return await self._in(await self.session(), path, body, READ_SECONDS)

        return (await self._again(ask)).value

    # -- actions

    async def act(self, path: str, body: Json, *, seconds: float = READ_SECONDS) -> object:
        """POST an action in the session, once.

        Raises CommandFailed with ``may_repeat`` if the session has ended; nothing was done then. It is not repeated
        here, because WDA may have been restarted, or another owner may have used the phone.
        """
        try:
            return await self.in_session(await self.session(), path, body, seconds=seconds)
        except WdaRefusal as error:
            if error.code != SESSION_LOST:
                raise
            raise session_lost() from error

    async def in_session(self, session: str, path: str, body: Json | None, *, seconds: float) -> object:
        """Make a request once, in this session and no other; ``body`` None is a GET. Raises WdaRefusal if it has
        ended.
        """
        return (await self._in(session, path, body, seconds)).value

    async def act_anywhere(self, path: str) -> object:
        """POST an action that needs no session, once."""
        return (await self._call("POST", path, {}, READ_SECONDS)).value

    # -- the session

    async def session(self) -> str:
        """Return the session's id: the known one, else that of WDA's current session, else a new one's."""
        async with self._opening:
            if not self._session:
                self._session = (await self.status()).session or await self._new_session()
            return self._session

    async def take_session(self) -> None:
        """Make a new session, which ends the current one, whoever made it."""
        async with self._opening:
            self._session = await self._new_session()

    async def _new_session(self) -> str:
        # Without a bundleId no app is started, and none is ended with the session.
        body = {"capabilities": {"alwaysMatch": {"shouldTerminateApp": False}}}
        answer = await self._call("POST", "/session", body, READ_SECONDS)
        if not answer.session:
            raise CommandFailed("WebDriverAgent made no session.", key="wda_no_session")
        try:
            await self._call(
                "POST", f"/session/{answer.session}/appium/settings", {"settings": _SETTINGS}, READ_SECONDS
            )
        except WdaRefusal as error:  # an older one; it is only slower
            log.info("wda.settings_refused", place=self.place, why=error.words)
        return answer.session

    async def close(self) -> None:
        await self._http.aclose()

    # -- calls

    async def _in(self, session: str, path: str, body: Json | None, seconds: float) -> WdaAnswer:
        try:
            return await self._call("GET" if body is None else "POST", f"/session/{session}{path}", body, seconds)
        except WdaRefusal as error:
            if error.code == SESSION_LOST and self._session == session:
                self._session = ""
            raise

    async def _again(self, ask: _Ask) -> WdaAnswer:
        """Try by the retry table, but only once while the phone stays away."""
        if self._gone:
            answer = await ask()
        else:
            try:
                answer = await with_retries(ask, sleep=self._sleep)
            except DeviceOffline:
                self._gone = True
                raise
        self._gone = False
        return answer

    async def _call(self, method: str, path: str, body: Json | None, seconds: float) -> WdaAnswer:
        self.round_trips += 1
        connect = min(seconds, CONNECT_SECONDS)
        limits = httpx2.Timeout(seconds, connect=connect, pool=connect)
        try:
            async with (
                asyncio.timeout(seconds + connect),
                self._http.stream(method, path, json=body, timeout=limits) as response,
            ):
                data = bytearray()
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > MAX_ANSWER:
                        raise self._strange(f"more than {MAX_ANSWER} bytes")
                status = response.status_code
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise self._absent() from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            said = f"WebDriverAgent at {self.place} gave no answer within {seconds:g} s."
            raise CommandFailed(said, key="wda_late", place=self.place, seconds=f"{seconds:g}") from error
        except REQUEST_ERRORS as error:
            said = f"The connection to WebDriverAgent at {self.place} broke."
            raise DeviceOffline(said, key="wda_broke_off", place=self.place) from error
        return self._answer(status, bytes(data))

    def _absent(self) -> DeviceOffline:
        error = DeviceOffline(
            f"No WebDriverAgent answers at {self.place}.",
            advice="Start it on the iPhone, trust its developer there, and forward its port to this computer.",
            key="wda_absent",
            place=self.place,
        )
        error.may_repeat = True
        return error

    def _answer(self, status: int, data: bytes) -> WdaAnswer:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or "value" not in found:
            raise self._strange(f"HTTP {status} that is no JSON of WebDriver")
        value, session = found["value"], found.get("sessionId")
        session = session if isinstance(session, str) else ""
        if isinstance(value, dict) and isinstance(value.get("error"), str):
            raise _refusal(value["error"], str(value.get("message") or value["error"]), session)
        if status != 200:
            raise self._strange(f"HTTP {status} without an error")
        return WdaAnswer(value, session)

    def _strange(self, what: str) -> CommandFailed:
        said = f"What answers at {self.place} is no WebDriverAgent: {what}."
        return CommandFailed(said, key="wda_strange", place=self.place, why=what)


def session_lost() -> CommandFailed:
    """Return the error for an act that WDA refused, because it knows the session no more. Nothing was done."""
    error = CommandFailed("The session of WebDriverAgent has ended.", key="wda_session_lost")
    error.may_repeat = True
    return error


def _refusal(code: str, message: str, session: str) -> DeviceError:
    words = " ".join(message.split())[:300]
    if code == "unable to capture screen":
        return ScreenshotFailed(f"The phone gave no picture: {words}.", key="no_screenshot", why=words)
    if code == "unexpected alert open":
        return CommandFailed(
            "A dialog of the system is in front.", advice="Answer it on the phone.", key="wda_alert", why=words
        )
    return WdaRefusal(code, words, session)


def number(value: object, name: str) -> float | None:
    """Return a number of an answer; None if there is none of that name."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def text(value: object, name: str) -> str:
    """Return a text of an answer; "" if there is none of that name."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""
