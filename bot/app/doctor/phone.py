"""The checks of the phone and the way to it. They only read: the screen stays off, the keyboard stays the same.

A command that a run could notice, like a key without effect, is tried only while no run has the phone.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress

from agent_core.apps.profile import profile, profiles
from agent_core.devices.adb.brands import advice
from agent_core.devices.adb.identity import read_hardware
from agent_core.devices.adb.keyboard import METHOD
from agent_core.devices.adb.parse import denies_input, first_line
from agent_core.devices.adb.paste import check as check_paste
from agent_core.devices.adb.paste import probe
from agent_core.devices.adb.program import find_adb, version_of
from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.devices.adb.setup import HARMLESS_KEY, SETTINGS, PhoneSetup
from agent_core.devices.adb.transport import Transport, query
from agent_core.devices.base import DeviceEntry
from agent_core.devices.shell import PIPE, Raw, command_line
from agent_core.errors import (
    AdbNotFound,
    DeviceError,
    LeaseLost,
    ScreenOff,
    ScreenshotFailed,
    TextInputFailed,
    TreeUnavailable,
)
from agent_core.perception.tree import TreeHealth, health
from agent_core.texts import Listed, Worded
from bot.app.doctor.exam import Exam, found, soon
from bot.app.doctor.ios_and_harmonyos import other_than_android
from bot.app.doctor.report import DoctorVerdict, failed, note, ok, skipped, warning
from bot.app.identities import merged

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


# -- the way to it


async def adb(exam: Exam) -> DoctorVerdict:
    if (other := other_than_android(exam)) is not None:
        return other
    device = exam.settings.device
    program, problem = "", ""
    try:
        program = await asyncio.to_thread(find_adb, device.adb_path or None)
        program = f"{program} {(await asyncio.to_thread(version_of, program)).text}".rstrip()
    except AdbNotFound as error:
        problem = error.message
    # Raises AdbNotFound if there is neither a server nor a program to start one.
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
    entries = await _one_each(exam, server, entries)
    verdict = _choose(exam, entries, problems)
    if isinstance(verdict, DoctorVerdict):
        return verdict
    exam.entry_state = verdict.state
    at = exam.wanted if exam.wanted in verdict.transports else verdict.reached_by[0]
    exam.device = server.device(verdict.serial, sleep=soon, at=at)
    exam.stack.push_async_callback(exam.device.close)
    exam.transport = Transport(server.host, server.port, verdict.serial, sleep=soon, at=at)
    others = [entry.serial for entry in entries if entry.serial != verdict.serial]
    values = {"serial": verdict.serial, "connection": verdict.connection}
    if problems:
        return warning("not_all_connected", problems=" ".join(problems), **values)
    return ok("one_of_several", others=Listed(others), **values) if others else ok("only", **values)


def _addresses(exam: Exam) -> tuple[str, ...]:
    """Return the addresses to connect to: those of the settings, and the phone itself if it is an address."""
    wanted = (exam.wanted,) if re.search(r":\d+$", exam.wanted) else ()
    return tuple(dict.fromkeys((*exam.settings.device.connect, *wanted)))


async def _connect(server: AdbServer, address: str) -> str:
    """Connect to a phone. Return the problem, or "".

    A phone that has yet to allow this computer is the next check's problem. The server is asked directly, so that no
    thread waits for a phone that never answers.
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
    """Return the phones, once one can be used (the wanted one if one is named), or after a moment."""
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


async def _one_each(exam: Exam, server: AdbServer, entries: Sequence[DeviceEntry]) -> list[DeviceEntry]:
    """Return one entry for each phone. Nothing is stored; a phone that does not answer keeps its transport's name."""

    async def serial(entry: DeviceEntry) -> str:
        if entry.state != "device":
            return entry.serial
        try:
            hardware = await read_hardware(Transport(server.host, server.port, entry.serial, sleep=soon))
        except DeviceError:
            return entry.serial
        return entry.serial if hardware is None else exam.known.get(hardware.key, hardware.serial)

    ways: dict[str, list[DeviceEntry]] = {}
    for entry, its in zip(entries, await asyncio.gather(*map(serial, entries)), strict=True):
        ways.setdefault(its, []).append(entry)
    return [merged(its, found, (exam.wanted,)) for its, found in ways.items()]


def _choose(exam: Exam, entries: list[DeviceEntry], problems: list[str]) -> DeviceEntry | DoctorVerdict:
    """Return the phone that a run would take, or the verdict if there is none."""
    names = Listed(entry.serial for entry in entries)
    if exam.wanted:
        entry = next((entry for entry in entries if exam.wanted in (entry.serial, *entry.transports)), None)
        if entry is None and problems:
            return failed("not_connected", problems=" ".join(problems))
        if entry is None:
            return failed("absent", serial=exam.wanted, others=names) if names else failed("alone", serial=exam.wanted)
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


# -- reading the phone


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
    """Tell whether ``dumpsys window policy`` says that the lock screen needs a PIN or the like; None if it does not
    say.
    """
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


# -- permissions


async def keyboard(exam: Exam) -> DoctorVerdict:
    """Try ADB Keyboard and pasting; one of them is enough to type any text."""
    listed = await exam.shell(_METHODS)
    installed = METHOD in {line.strip() for line in listed.out.splitlines()}
    error = first_line(listed.text) if "Exception" in listed.text else ""
    try:
        async with exam.acting():
            chosen = await exam.shell(_CHOOSE_AGAIN) if installed and not error else None
            if chosen is not None and "Exception" not in chosen.text:
                return ok("ready")
            error = error or (first_line(chosen.text) if chosen is not None else "")
            unpasted = await _unpasted(exam)
    except LeaseLost:
        return skipped("busy")
    if not unpasted:
        return warning("refused_pasted", error=error, how=await _how(exam)) if error else ok("pasted")
    return failed("refused", error=error, how=await _how(exam)) if error else failed("missing", error=unpasted)


async def _unpasted(exam: Exam) -> str:
    """Return why no text can be pasted on the phone; "" if one can be."""
    try:
        check_paste(await exam.shell(probe()))
    except TextInputFailed as error:
        return first_line(error.message)
    return ""


async def _how(exam: Exam) -> Worded:
    """Return what the owner can do on a phone of this brand, so that it accepts taps and changed settings."""
    return advice(await found(exam.transport).brand(), "input")


async def touch(exam: Exam) -> DoctorVerdict:
    try:
        async with exam.acting():
            result = await exam.shell(command_line(HARMLESS_KEY))
    except LeaseLost:
        return skipped("busy")
    if denies_input(result.text):
        return failed("denied", how=await _how(exam))
    if result.code != 0 or "Exception" in result.text:
        return failed("error", error=first_line(result.text) or f"exit code {result.code}")
    return ok("allowed")


async def setup(exam: Exam) -> DoctorVerdict:
    """Offer to keep the screen on while charging, and to turn animations off. The keyboard has a check of its own."""
    try:
        async with exam.acting():  # a run changes some of the same settings while it works
            report = await PhoneSetup(found(exam.transport)).plan()
    except LeaseLost:
        return skipped("busy")
    wanted = [change.key for change in report.changes if change.key in SETTINGS]
    return note("offered", serial=report.serial) if wanted else ok("done")


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
    """Offer to learn the look of the chat apps on the phone that are not known yet."""
    device = found(exam.device)
    installed = await device.packages()
    known, unknown, first = [], [], ""
    for one in profiles():
        package = next((name for name in one.packages if name in installed), None)
        if package is None:
            continue
        version = await device.app_version(package) or "?"
        checked = f"{one.key} {version}" in exam.settings.run.checked_versions
        if checked or (device.serial, one.key, version) in exam.learnt:
            known.append(f"{one.name_in(exam.lang)} {version}")
        else:
            unknown.append(f"{one.name_in(exam.lang)} {version}")
            first = first or one.key
    if unknown:
        return note("offered", apps=Listed(unknown), app=first)
    return ok("known", apps=Listed(known)) if known else skipped("no_app")


_RELATIVES = frozenset({"com.tencent.tim", "com.tencent.qqlite", "com.tencent.minihd.qq", "com.tencent.eim"})
