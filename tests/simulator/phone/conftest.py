"""A phone behind a real adb server, once with each adb program."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from simulator.phone.adbd import AdbdServer
from tests.simulator.phone.small_phone import SmallPhone
from tests.support.adb import AdbServerProcess, adb_server, programs


@pytest.fixture(params=list(programs()))
async def adb(request: pytest.FixtureRequest) -> AsyncIterator[AdbServerProcess]:
    program = programs()[request.param]
    if program is None:
        pytest.skip(f"no {request.param} adb on this machine")
    async with adb_server(program) as server:
        yield server


@pytest.fixture
def phone() -> SmallPhone:
    return SmallPhone()


@pytest.fixture
async def adbd(phone: SmallPhone) -> AsyncIterator[AdbdServer]:
    async with AdbdServer(phone) as server:
        yield server


@pytest.fixture
async def serial(adb: AdbServerProcess, adbd: AdbdServer) -> str:
    return await adb.connect(adbd.port)
