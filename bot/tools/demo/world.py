"""The demo's world: a virtual phone behind a real adb server, and the demo model, all on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_core.devices.adb.server import open_adb
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.tools.eval.scenario import EvalScenario
from simulator.model.server import MODEL_NAME, start_demo_model
from simulator.phone.assembly import CHECKED
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario_file import load_scenario
from simulator.phone.server import serve


@dataclass(frozen=True, slots=True)
class World:
    """The demo's world. ``settings`` point the product at the simulators; ``phone`` knows what really happened."""

    settings: Settings
    phone: VirtualPhone
    state_url: str
    data_dir: Path


@asynccontextmanager
async def demo_world(
    scenario: Path | None = None, *, lang: str | None = None, **overrides: Any
) -> AsyncIterator[World]:
    """Start the simulators on free ports of 127.0.0.1 and end them afterwards. Nothing stays on the disk."""
    async with AsyncExitStack() as stack:
        data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phonedesk-demo-")))
        world = load_scenario(scenario, EvalScenario) if scenario else None  # an evaluation in it is ignored
        running = await stack.enter_async_context(serve(world))
        # A separate port, separate keys, no USB: this machine's phones and adb server are left alone.
        adb = await stack.enter_async_context(await open_adb(port=0, usb=False, home=data_dir))
        model = await start_demo_model()
        stack.push_async_callback(model.close)
        settings = load(
            data_dir=data_dir / "data",
            database_url=f"sqlite:///{data_dir / 'phonedesk.sqlite3'}",
            lang=lang,
            model={"base_url": model.url, "name": MODEL_NAME, "api_key": "demo", "fallbacks": ()},
            device={"serial": running.address, "adb_host": "127.0.0.1", "adb_port": adb.port, "connect": ()},
            queue={"executor_id": "demo", "database_url": ""},
            run={"checked_versions": CHECKED},
            **{
                "knowledge": {"provider": "embedded", "sample": True},
                "web": {"host": "127.0.0.1", "port": 0},
                **overrides,
            },
        )
        yield World(settings, running.phone, running.state_url, data_dir)
