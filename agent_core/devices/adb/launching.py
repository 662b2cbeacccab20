"""Bringing an app to the front and waiting until it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agent_core.devices.adb import parse
from agent_core.devices.adb.transport import Transport, require
from agent_core.devices.base import Window, WindowKind
from agent_core.devices.checks import check_package
from agent_core.devices.shell import PIPE, command_line
from agent_core.devices.waiting import Time
from agent_core.errors import AppNotFound, CommandFailed

LAUNCH_SECONDS = 10.0
WINDOW_COMMAND = ("dumpsys", "window", PIPE, "grep", "-E", parse.WINDOW_LINES)
_LAUNCHER = "android.intent.category.LAUNCHER"
_MAIN = ("-a", "android.intent.action.MAIN", "-c", _LAUNCHER)
_BRING_TO_FRONT = "0x10200000"  # FLAG_ACTIVITY_NEW_TASK | FLAG_ACTIVITY_RESET_TASK_IF_NEEDED, as a launcher does


class Launcher:
    """A launcher of apps, as the home screen is.

    components: the launcher activities by package, which later runs know, too, until one turns out to be gone.
    """

    def __init__(
        self, transport: Transport, time: Time, window: Callable[[], Awaitable[Window]], components: dict[str, str]
    ) -> None:
        self._transport, self._time, self._window = transport, time, window
        self._components = components
        self._old: set[str] | None = None  # None: apps are not restarted; else the packages that were restarted already

    def start_afresh(self) -> None:
        """End each app before it is brought to the front for the first time from now on."""
        self._old = set()

    async def launch(self, package: str) -> None:
        check_package(package)
        if self._old is not None and package not in self._old:
            self._old.add(package)
            require(await self._transport.shell(command_line(("am", "force-stop", package))))
        component = self._components.get(package) or await self._resolve(package)
        shown = await self._start(component) if component is not None else None
        if component is not None and shown is None:
            # An update moved the activity.
            self._components.pop(package, None)
            component = await self._resolve(package)
            shown = await self._start(component) if component is not None else None
        if shown is None:
            await self._start_by_monkey(package)
        if shown is None or not _is_front(shown, package):
            await self._wait_in_front(package)

    async def _resolve(self, package: str) -> str | None:
        """Return the launcher activity; None if the system names none.

        Raises AppNotFound if the app is not installed.
        """
        resolve = ("cmd", "package", "resolve-activity", "--brief", *_MAIN, package)
        result = await self._transport.shell(command_line(resolve), safe=True)
        component = parse.parse_component(result.out, package)
        if component is not None:
            self._components[package] = component
            return component
        installed = await self._transport.shell(command_line(("pm", "path", package)), safe=True)
        if "package:" not in installed.out:
            raise AppNotFound(f"{package} is not installed on the phone.", key="package_missing", package=package)
        return None

    async def _start(self, component: str) -> Window | None:
        """Start an activity. Return the window in front then, from the same call; None if there is no such activity."""
        args = ("am", "start", *_MAIN, "-f", _BRING_TO_FRONT, "-n", component)
        line = f"{command_line(args)} && {{ {command_line(WINDOW_COMMAND)}; true; }}"
        result = await self._transport.shell(line)
        if "does not exist" in result.text or "Error type 3" in result.text:
            return None
        require(result)
        return parse.parse_look(result.out).window

    async def _start_by_monkey(self, package: str) -> None:
        result = await self._transport.shell(command_line(("monkey", "-p", package, "-c", _LAUNCHER, "1")))
        if "No activities found" in result.text:
            raise AppNotFound(f"{package} has nothing that could be started.", key="package_dead", package=package)
        require(result)

    async def _wait_in_front(self, package: str) -> None:
        seen: Window | None = None

        async def in_front() -> bool | None:
            nonlocal seen
            seen = await self._window()
            return True if _is_front(seen, package) else None

        if await self._time.until(in_front, LAUNCH_SECONDS) is None:
            what = "nothing" if seen is None else seen.package or f"the {seen.kind.value} window"
            said = f"{package} was started but did not come to the front; there is {what}."
            raise CommandFailed(
                said, key="not_in_front", package=package, what="?" if seen is None else seen.package or "?"
            )


def _is_front(window: Window, package: str) -> bool:
    return window.kind is WindowKind.APP and window.package == package
