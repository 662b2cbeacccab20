"""The checks of the phone and the way to it. They look only: the screen stays off, the keyboard stays what it is."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import aclosing, suppress

from agent_core.apps.profile import profile, profiles
from agent_core.devices.adb.keyboard import METHOD
from agent_core.devices.adb.parse import denies_input, first_line
from agent_core.devices.adb.server import AdbServer, DeviceEntry, find_adb, open_adb
from agent_core.devices.adb.transport import PIPE, Raw, Transport, command_line, query
from agent_core.errors import AdbNotFound, DeviceError, ScreenOff, ScreenshotFailed, TreeUnavailable
from agent_core.perception.tree import TreeHealth, health
from agent_core.texts import Listed
from bot.app.doctor.exam import Exam, found, soon
from bot.app.doctor.report import DoctorVerdict, failed, note, ok, skipped, warning

APPEAR_SECONDS = 2.0  # a server that has just been started sees its phones a little later
SETTLE_SECONDS = 1.5  # from attached to usable
CONNECT_SECONDS = 4.0
UNAUTHORIZED = frozenset({"unauthorized", "authorizing"})
APP = "qq"

_SECURE = re.compile(r"^\s*(?:secure|mIsSecure)=(true|false)\s*$", re.MULTILINE)
_SECURE_LINE = command_line(("dumpsys", "window", "policy", PIPE, "grep", "-iE", "secure="))
_METHODS = command_line(("ime", "list", "-a", "-s"))
# Choosing the keyboard that is chosen already changes nothing, but needs the same right as choosing another.
_CHOOSE_AGAIN = command_line(("ime", "set", Raw('"$(settings get secure default_input_method)"')))
# KEYCODE_UNKNOWN: it goes the way of every key, and no window does anything with it.
_HARMLESS_KEY = command_line(("input", "keyevent", "0"))


# -- the way to it


async def adb(exam: Exam) -> DoctorVerdict:
    device = exam.settings.device
    program, problem = "", ""
    try:
        program = find_adb(device.adb_path or None)
    except AdbNotFound as error:
        problem = error.message
    # Raises AdbNotFound where there is neither a server nor a program to start one.
    server = await open_adb(device.adb_path or None, device.adb_host, device.adb_port)
    exam.adb = await exam.stack.enter_async_context(server)
    address = f"{server.host}:{server.port}"
    if problem:
        return warning("no_program", address=address, problem=problem)
    return ok("started" if server.owned else "running", program=program, address=address)


async def phone(exam: Exam) -> DoctorVerdict:
    server = found(exam.adb)
    problems = [problem for address in _addresses(exam) if (problem := await _connect(server, address))]
    entries = await _settled(server, exam.wanted) if not problems else await server.devices()
    verdict = _choose(exam, entries, problems)
    if isinstance(verdict, DoctorVerdict):
        return verdict
    exam.entry_state = verdict.state
    exam.device = server.device(verdict.serial, sleep=soon)
    exam.stack.push_async_callback(exam.device.close)
    exam.transport = Transport(server.host, server.port, verdict.serial, sleep=soon)
    others = [entry.serial for entry in entries if entry.serial != verdict.serial]
    values = {"serial": verdict.serial, "connection": verdict.connection}
    if problems:
        return warning("not_all_connected", problems=" ".join(problems), **values)
    return ok("one_of_several", others=Listed(others), **values) if others else ok("only", **values)


def _addresses(exam: Exam) -> tuple[str, ...]:
    """What has to be connected to: the settings' addresses, and the phone itself where it is one."""
    wanted = (exam.wanted,) if re.search(r":\d+$", exam.wanted) else ()
    return tuple(dict.fromkeys((*exam.settings.device.connect, *wanted)))


async def _connect(server: AdbServer, address: str) -> str:
    """What went wrong, or "". That the phone has to allow this computer is the next check's.

    Asked of the server directly, so that one who never answers is not waited for in a thread.
    """
    try:
        answer = await _ask_to_connect(server, address)
        if answer.startswith("already") and await _state(server, address) == "offline":
            # Said of a connection that died, too.
            await server.disconnect(address)
            answer = await _ask_to_connect(server, address)
    except DeviceError:
        return f"{address} gave no answer."
    if answer.startswith(("connected to", "already connected to")) or "failed to authenticate" in answer:
        return ""
    return f"{address}: {answer}."


async def _ask_to_connect(server: AdbServer, address: str) -> str:
    answer = await query(server.host, server.port, f"host:connect:{address}", seconds=CONNECT_SECONDS)
    return answer.strip()


async def _state(server: AdbServer, serial: str) -> str:
    return next((entry.state for entry in await server.devices() if entry.serial == serial), "absent")


async def _settled(server: AdbServer, wanted: str) -> list[DeviceEntry]:
    """The phones, once one can be used (the wanted one where there is one), or after a moment."""
    last = await server.devices()

    def usable() -> bool:
        return any(entry.state == "device" and wanted in {"", entry.serial} for entry in last)

    if usable() or not (last or server.owned):
        return last
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_SECONDS if last else APPEAR_SECONDS), aclosing(server.track()) as lists:
            async for entries in lists:
                last = entries
                if usable():
                    break
    return last


def _choose(exam: Exam, entries: list[DeviceEntry], problems: list[str]) -> DeviceEntry | DoctorVerdict:
    """The phone that a run would take, or why there is none."""
    names = Listed(entry.serial for entry in entries)
    if exam.wanted:
        entry = next((entry for entry in entries if entry.serial == exam.wanted), None)
        if entry is None and problems:
            return failed("not_connected", problems=" ".join(problems))
        if entry is None:
            return failed("absent", serial=exam.wanted, others=names) if names else failed("none")
    else:
        usable = [entry for entry in entries if entry.state == "device"]
        if len(usable) > 1:
            return failed("several", serials=Listed(entry.serial for entry in usable), first=usable[0].serial)
        asking = [entry for entry in entries if entry.state in UNAUTHORIZED]
        entry = next(iter((*usable, *asking, *entries)), None)
        if entry is None:
            return failed("not_connected", problems=" ".join(problems)) if problems else failed("none")
    if entry.state not in {"device", *UNAUTHORIZED}:
        case = "offline_network" if entry.connection == "tcp" else "offline"
        return failed(case, serial=entry.serial, state=entry.state)
    return entry


async def authorised(exam: Exam) -> DoctorVerdict:
    if exam.entry_state in UNAUTHORIZED:
        return failed("no")
    device = found(exam.device)
    info = await device.info()
    release = (await device.properties("ro.build.version.release"))["ro.build.version.release"]
    return ok("yes", model=info.model, android=release, size=f"{info.size[0]}×{info.size[1]}")


# -- what it shows


async def screen(exam: Exam) -> DoctorVerdict:
    exam.look = await found(exam.device).look()
    secret = asks_for_secret((await exam.shell(_SECURE_LINE)).out)
    state = exam.look.screen
    if state.locked and secret:
        return failed("locked_with_secret")
    if state.locked:
        return warning("locked") if secret is None else ok("locked_open")
    if not state.awake:
        return warning("asleep_with_secret") if secret else warning("asleep")
    return warning("awake_with_secret") if secret else ok("awake")


def asks_for_secret(text: str) -> bool | None:
    """Whether ``dumpsys window policy`` says that the lock screen wants a PIN or the like; None: it does not say."""
    answer = _SECURE.search(text)
    return answer[1] == "true" if answer else None


async def screenshot(exam: Exam) -> DoctorVerdict:
    if not found(exam.look).screen.awake:
        return skipped("asleep")
    started = time.monotonic()
    try:
        frame = await found(exam.device).screenshot()
    except ScreenOff:
        return skipped("asleep")
    except ScreenshotFailed as error:
        return failed("bad", error=error.message)
    return ok("good", size=f"{frame.size[0]}×{frame.size[1]}", ms=round((time.monotonic() - started) * 1000))


async def tree(exam: Exam) -> DoctorVerdict:
    if exam.settings.observe.tree == "off":
        return skipped("off")
    look, device = found(exam.look), found(exam.device)
    if not look.screen.awake:
        return skipped("asleep")
    if look.screen.locked:
        return skipped("locked")
    try:
        nodes = await device.tree()
    except TreeUnavailable as error:
        return warning("failing", error=error.message)
    window = look.window.package or look.window.kind.value
    condition = health(nodes, (await device.info()).size)
    if condition is TreeHealth.FULL:
        return ok("full", count=len(nodes), window=window)
    return warning("empty" if condition is TreeHealth.EMPTY else "no_texts", window=window)


# -- what may be done to it


async def keyboard(exam: Exam) -> DoctorVerdict:
    listed = await exam.shell(_METHODS)
    if "Exception" in listed.text:
        return failed("refused", error=first_line(listed.text))
    if METHOD not in {line.strip() for line in listed.out.splitlines()}:
        return failed("missing")
    if found(exam.device).serial in exam.held:
        return skipped("busy")
    chosen = await exam.shell(_CHOOSE_AGAIN)
    if "Exception" in chosen.text:
        return failed("refused", error=first_line(chosen.text))
    return ok("ready")


async def touch(exam: Exam) -> DoctorVerdict:
    result = await exam.shell(_HARMLESS_KEY)
    if denies_input(result.text):
        return failed("denied")
    if result.code != 0 or "Exception" in result.text:
        return failed("error", error=first_line(result.text) or f"exit code {result.code}")
    return ok("allowed")


async def app(exam: Exam) -> DoctorVerdict:
    wanted, device = profile(APP), found(exam.device)
    name = wanted.name_in(exam.lang)
    installed = await device.packages()
    package = next((one for one in wanted.packages if one in installed), None)
    if package is None:
        alike = [one for one in installed if one.startswith(wanted.packages) or one in _RELATIVES]
        return (
            failed("other", app=name, package=wanted.packages[0], others=Listed(alike))
            if alike
            else (failed("missing", app=name, package=wanted.packages[0]))
        )
    return ok("installed", app=name, package=package, version=await device.app_version(package) or "?")


async def learnt(exam: Exam) -> DoctorVerdict:
    """Offers to get to know the chat apps on the phone that are not known yet."""
    device = found(exam.device)
    installed = await device.packages()
    known, unknown, first = [], [], ""
    for one in profiles():
        package = next((name for name in one.packages if name in installed), None)
        if package is None:
            continue
        version = await device.app_version(package) or "?"
        if (device.serial, one.key, version) in exam.learnt:
            known.append(f"{one.name_in(exam.lang)} {version}")
        else:
            unknown.append(f"{one.name_in(exam.lang)} {version}")
            first = first or one.key
    if unknown:
        return note("offered", apps=Listed(unknown), app=first)
    return ok("known", apps=Listed(known)) if known else skipped("no_app")


_RELATIVES = frozenset({"com.tencent.tim", "com.tencent.qqlite", "com.tencent.minihd.qq", "com.tencent.eim"})
