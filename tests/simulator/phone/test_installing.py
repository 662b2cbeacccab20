"""Installing an app with real adb clients, and what a phone refuses whose maker's switch is off."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.phone import ime
from simulator.phone.scenario import KeyboardPart, Scenario
from simulator.phone.server import serve
from tests.support.adb import adb_server, programs
from tests.support.apk import KEYBOARD, keyboard_apk


@pytest.mark.device
@pytest.mark.parametrize("program", programs())
async def test_adb_installs_the_keyboard_and_takes_it_away(program: str, tmp_path: Path) -> None:
    path = programs()[program]
    if path is None:
        pytest.skip(f"no {program} adb")
    file = str(keyboard_apk(tmp_path / "keyboard.apk"))
    scenario = Scenario(keyboard=KeyboardPart(adb_installed=False))
    async with serve(scenario) as running, adb_server(path) as adb:
        serial = await adb.connect(running.adb_port)
        done = await adb.run("-s", serial, "install", "-r", file)
        assert (done.code, "Success" in done.text) == (0, True), done
        assert (await adb.run("-s", serial, "shell", "pm", "list", "packages", KEYBOARD)).text.strip() == (
            f"package:{KEYBOARD}"
        )
        listed = (await adb.run("-s", serial, "shell", "ime", "list", "-s")).text.split()
        assert ime.ADB not in listed  # installed is not enabled
        assert ime.ADB in (await adb.run("-s", serial, "shell", "ime", "list", "-a", "-s")).text.split()
        await adb.run("-s", serial, "shell", "ime", "enable", ime.ADB)
        await adb.run("-s", serial, "shell", "ime", "set", ime.ADB)
        assert "Success" in (await adb.run("-s", serial, "uninstall", KEYBOARD)).text
        assert running.phone.report()["input_method"] == ime.SOGOU
        assert ime.ADB not in running.phone.settings["secure", "enabled_input_methods"]
        (tmp_path / "broken.apk").write_text("no app")
        broken = await adb.run("-s", serial, "install", str(tmp_path / "broken.apk"))
        assert "INSTALL_PARSE_FAILED_NOT_APK" in broken.text + broken.err.decode()
        running.phone.set_fault("install_denied")
        refused = await adb.run("-s", serial, "install", file)
        assert "INSTALL_FAILED_USER_RESTRICTED" in refused.text + refused.err.decode()


@pytest.mark.device
async def test_a_phone_that_lets_nobody_change_its_settings() -> None:
    async with serve() as running, adb_server() as adb:
        serial = await adb.connect(running.adb_port)
        before = dict(running.phone.settings)
        running.phone.set_fault("settings_denied")
        for command in (
            ("settings", "put", "global", "window_animation_scale", "0"),
            ("settings", "delete", "system", "screen_brightness"),
            ("ime", "enable", ime.ADB),
            ("ime", "set", ime.ADB),
        ):
            refused = await adb.run("-s", serial, "shell", *command)
            assert refused.code == 255
            assert "java.lang.SecurityException" in refused.err.decode()
            assert "android.permission.WRITE_SECURE_SETTINGS" in refused.err.decode()
        assert running.phone.settings == before
        read = await adb.run("-s", serial, "shell", "settings", "get", "system", "screen_brightness")
        assert read.text.strip() == "128"
