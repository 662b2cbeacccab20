"""HarmonyOS's commands for a virtual phone: ``uitest``, ``aa``, ``bm``, ``hidumper``, ``power-shell``, ``param`` …

They exist beside Android's commands and work on the same phone. Syntax, checks and outputs are those of OpenHarmony's
sources: testfwk_arkxtest (``uitest``), ability_tools (``aa``), bundle_framework (``bm``), powermgr (``power-shell``,
dumps), theme_screenlock_mgr and window_manager (dumps).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from agent_core.devices.base import WindowKind
from simulator.phone.commands import COMMANDS
from simulator.phone.commands.base import Call, Command
from simulator.phone.hdc import usage
from simulator.phone.hdc.layout import ABILITY, DESKTOP, bundle_of, package_of
from simulator.phone.hdc.uitest import Uitest, number, option
from simulator.phone.phone import VirtualPhone

# The commands of toybox on either system.
SHARED = (
    "echo", "printf", "true", "false", "sleep", "cat", "ls", "rm", "mkdir", "test", "[", "grep", "base64", "head",
)  # fmt: skip
OVERRIDE = ("harmonyos", "screen_off_override")


class Vocabulary:
    """The commands of one phone."""

    def __init__(self, phone: VirtualPhone, *, api: int = 20) -> None:
        """api: of the system. Before 18 uitest types at places only."""
        self.phone, self.api = phone, api
        ui = Uitest(phone, api)
        own = {
            "uitest": ui.uitest, "aa": self.aa, "bm": self.bm, "hidumper": self.hidumper, "param": self.param,
            "power-shell": self.power_shell, "snapshot_display": ui.snapshot_display,
        }  # fmt: skip
        self.commands: Mapping[str, Command] = {name: COMMANDS[name] for name in SHARED} | own

    # -- apps

    async def aa(self, call: Call) -> int:
        verb, arguments = call.shifted(), call.arguments
        if verb == "start":
            return await self._start(call, arguments)
        if verb == "force-stop" and len(arguments) == 1:
            await self.phone.force_stop(package_of(arguments[0]))
            call.line("force stop process successfully.")
            return 0
        if verb == "dump" and arguments in (["-l"], ["--mission-list"]):
            self._missions(call)
            return 0
        call.line(usage.AA)
        return 1

    async def _start(self, call: Call, arguments: list[str]) -> int:
        ability, bundle, url = (option(arguments, name) for name in ("-a", "-b", "-U"))
        if bundle and not ability:
            call.line("error: option requires a value.\n" + usage.AA)
            return 1
        if bundle and ability:
            app = self.phone.apps.get(package_of(bundle))
            started = app is not None and app.launchable and ability == ABILITY and await self.phone.launch(app.package)
        else:
            started = bool(url) and await self.phone.open_url(url or "")
        if not started:
            call.line("error: failed to start ability.")
            call.line("Error Code:10104001  Error Message:The specified ability does not exist")
            return 0
        call.line("start ability successfully.")
        return 0

    def _missions(self, call: Call) -> None:
        """Print the apps that were opened, the newest first; the desktop is not a mission."""
        window = self.phone.window()
        opened = list(dict.fromkeys(reversed(self.phone.report()["opened"])))
        call.line("User ID #100\n  current mission lists:{")
        for mission, package in enumerate(opened, 41):
            bundle = bundle_of(package)
            if bundle == DESKTOP:
                continue
            front = package == window.package or (window.kind is WindowKind.SHADE and package == opened[0])
            state = "FOREGROUND" if front else "BACKGROUND"
            call.line(
                f"    Mission ID #{mission}  mission name #[#{bundle}:entry:{ABILITY}]  lockedState #0  "
                f"mission affinity #[]\n      AbilityRecord ID #{mission + 2000}\n        app name [{bundle}]\n"
                f"        main name [{ABILITY}]\n        bundle name [{bundle}]\n        ability type [PAGE]\n"
                f"        state #{state}  start time [268869923]\n        app state #{state}\n"
                "        ready #1  window attached #0  launcher #0\n        callee connections:\n"
                "        isKeepAlive: false\n     }"
            )
        call.line(" }")

    async def bm(self, call: Call) -> int:
        verb, arguments = call.shifted(), call.arguments
        if verb == "dump" and arguments in (["-a"], ["--all"]):
            call.line("ID: 100:")
            for package in self.phone.apps:
                call.line(f"\t{bundle_of(package)}")
            return 0
        if verb == "dump" and len(arguments) == 2 and arguments[0] in ("-n", "--bundle-name"):
            return self._bundle(call, arguments[1])
        call.line(usage.BM)
        return 1

    def _bundle(self, call: Call, bundle: str) -> int:
        app = self.phone.apps.get(package_of(bundle))
        if app is None or bundle_of(app.package) != bundle:
            call.line("error: failed to get information and the parameters may be wrong.")
            return 0
        main = ABILITY if app.launchable else ""
        found = {
            "applicationInfo": {"bundleName": bundle, "label": app.label, "versionName": app.version},
            "hapModuleInfos": [
                {"moduleName": "library", "mainAbility": "", "abilityInfos": []},
                {
                    "moduleName": "entry",
                    "mainAbility": main,
                    "mainElementName": main,
                    "abilityInfos": [{"name": main, "skills": []}] if main else [],
                },
            ],
            "mainEntry": "entry",
            "name": bundle,
            "versionCode": 1,
            "versionName": app.version,
        }
        call.line(f"{bundle}:\n{json.dumps(found, ensure_ascii=False, indent=4)}")
        return 0

    # -- the system

    async def param(self, call: Call) -> int:
        if call.shifted() != "get" or len(call.arguments) != 1:
            call.line(usage.PARAM)
            return 1
        model = self.phone.scenario.phone
        values = {
            "const.product.model": model.model,
            "const.product.brand": model.brand,
            "const.product.name": model.model,
            "const.ohos.apiversion": str(self.api),
            "const.product.software.version": f"{model.model} 6.0.0.100",
        }
        name = call.arguments[0]
        call.line(values.get(name, f'Get parameter "{name}" fail! errNum is:106!'))
        return 0

    async def power_shell(self, call: Call) -> int:
        match call.shifted(), call.arguments:
            case "wakeup", []:
                await self.phone.key("WAKEUP")
                call.line("WakeupDevice is called")
            case "suspend", []:
                await self.phone.key("SLEEP")
                call.line("SuspendDevice is called")
            case "timeout", ["-o", text] if number(text):
                self.phone.set_setting(*OVERRIDE, text)
                call.line(f"Override screen off time to {text}")
            case "timeout", ["-r"]:
                self.phone.set_setting(*OVERRIDE, None)
                call.line("Restore screen off time")
            case _:
                call.line(usage.POWER_SHELL)
                return 1
        return 0

    async def hidumper(self, call: Call) -> int:
        match call.arguments:
            case ["-s", "PowerManagerService", "-a", "-s"]:
                state = "AWAKE" if self.phone.screen().awake else "SLEEP"
                text = f"POWER STATE DUMP:\nCurrent State: {state}  Reason: 20  Time: 107537120\n{self._timeout()}"
            case ["-s", "ScreenlockService", "-a", "-all"]:
                screen = self.phone.screen()
                text = (
                    "\n - screenlock system state\tvalue\t\tdescription\n"
                    f" * screenLocked  \t\t{str(screen.locked).lower()}\t\twhether there is lock screen status\n"
                    f" * screenState  \t\t{str(screen.awake).lower()}\t\tscreen on / off status\n"
                    " * offReason  \t\t\t0\t\tscreen failure reason"
                )
            case ["-s", "WindowManagerService", "-a", "-a"]:
                text = self._windows()
            case ["-s", "BatteryService", "-a", "-i"]:
                text = (
                    f"capacity: {self.phone.battery['level']} \nbatteryLevel: 3 \nchargingStatus: 1 \n"
                    "healthState: 1 \npluggedType: 2 \nvoltage: 4219000 \npresent: 1 \ntechnology: Li-poly \n"
                    f"temperature: {self.phone.battery['temperature']} "
                )
            case _:
                call.line(usage.HIDUMPER)
                return 1
        service = call.arguments[1]
        call.line(
            f"\n-------------------------------[ability]-------------------------------\n\n\n{service:-^86}\n{text}"
        )
        return 0

    def _timeout(self) -> str:
        return f"ScreenOffTime: Timeout={self.phone.settings.get(OVERRIDE, '60000')}ms"

    def _windows(self) -> str:
        width, height = self.phone.size
        names = {
            WindowKind.LOCK: "SCBScreenLock12", WindowKind.SHADE: "SCBDropdownPanel8", WindowKind.NONE: "SCBDesktop2"
        }  # fmt: skip
        window = self.phone.window()
        bundle = bundle_of(window.package or "")
        front = names.get(window.kind) or ("SCBDesktop2" if bundle == DESKTOP else f"{bundle.rpartition('.')[2]}0")
        rows = [("SCBStatusBar7", 9, 2108), (front, 13, 1)]
        lines = [
            f"{name[:20]:<20} 0         2230    {number:<5} {kind:<4} 1    0    1    0           "
            f"[ 0    0    {width} {height} ]"
            for name, number, kind in rows
        ]
        head = "WindowName           DisplayId Pid     WinId Type Mode Flag ZOrd Orientation [ x    y    w    h    ]"
        return "\n".join((f"{'ScreenGroup 0':-^86}", head, *lines, "-" * 86, "Focus window: 13", "total window num: 2"))
