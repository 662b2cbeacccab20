"""The unit for systemd and the compose file: what they name exists, and they fit the program and its container."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.app.settings.layers import Settings
from bot.app.settings.names import environment_name
from bot.app.shutdown import LAST_SECONDS
from bot.channels.cli.main import COMMANDS as GROUPS
from tests.support.docs import PAGES, calls

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "phonedesk.service"
COMMANDS = {name for group in GROUPS.values() for name in group}
END_SECONDS = Settings().queue.drain_seconds + LAST_SECONDS


def unit() -> dict[str, list[str]]:
    """The values of each name in the unit."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def compose() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return made


def test_the_unit_starts_the_server_and_gives_it_time_to_end() -> None:
    told = unit()
    [started] = told["ExecStart"]
    assert re.fullmatch(r"/\S+/phonedesk (\w+)", started)
    assert started.split()[1] in COMMANDS
    assert told["KillSignal"] == ["SIGTERM"]
    assert float(told["TimeoutStopSec"][0]) > END_SECONDS
    assert told["RestartPreventExitStatus"] == ["2"]
    assert told["WorkingDirectory"] == [f"/var/lib/{told['StateDirectory'][0]}"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="There is no systemd here.")
def test_systemd_understands_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    program = tmp_path / "phonedesk"
    program.symlink_to(sys.executable)
    copy.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={program}", UNIT.read_text()))
    for command in (["verify"], ["security", "--offline=true", "--threshold=25"]):  # 2.5 of 10
        done = subprocess.run(
            ["systemd-analyze", *command, str(copy)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.strip() == ""


def test_the_compose_file_names_settings_commands_and_places_that_exist() -> None:
    services = compose()["services"]
    desk, db = services["desk"], services["db"]
    assert desk["command"][0] in COMMANDS
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert desk["volumes"] == [f"desk:{re.search(r'^VOLUME (.+)$', dockerfile, re.M)[1]}"]  # type: ignore[index]
    names = {name for name in desk["environment"] if name.startswith("PHONEDESK_")}
    known = {environment_name(("database_url",)), environment_name(("web", "host")), environment_name(("web", "port"))}
    assert names == set(desk["environment"]) == known
    secret = "${POSTGRES_PASSWORD:?"
    assert secret in desk["environment"]["PHONEDESK_DATABASE_URL"]
    assert db["environment"]["POSTGRES_PASSWORD"].startswith(secret)
    user, name = db["environment"]["POSTGRES_USER"], db["environment"]["POSTGRES_DB"]
    url = desk["environment"]["PHONEDESK_DATABASE_URL"]
    assert url.startswith(f"postgresql://{user}:$")
    assert url.endswith(f"@db:5432/{name}")


def test_containers_are_closed_pinned_and_given_time_to_end() -> None:
    made = compose()
    for service in made["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert "build" in service or re.search(r":\d+\.\d+", service["image"])
        assert "no-new-privileges:true" in service["security_opt"]
        assert float(service["stop_grace_period"].removesuffix("s")) > END_SECONDS
        assert {volume.split(":")[0] for volume in service["volumes"]} <= made["volumes"].keys()
    assert made["services"]["desk"]["depends_on"] == {"db": {"condition": "service_healthy"}}


def test_containers_that_the_docs_start_are_closed_and_given_time_to_end() -> None:
    """A worker has no web server, so the image's health check would call it unhealthy for ever."""
    started = [one for page in PAGES for one in calls(page) if one.arguments[:2] == ("run", "-d")]
    assert {one.page for one in started} == {
        f"docs/how-to/{name}{end}" for name in ("install", "several-machines") for end in (".md", ".zh-CN.md")
    }
    for one in started:
        options, command = one.arguments[: one.arguments.index("phonedesk")], one.arguments[-3:]
        values = dict(pairwise(options))
        assert float(values["--stop-timeout"]) > END_SECONDS
        assert values["--restart"] == "unless-stopped"
        assert values.get("-p", "127.0.0.1:").startswith("127.0.0.1:")
        assert ("--no-healthcheck" in options) == (command[0] == "worker")
