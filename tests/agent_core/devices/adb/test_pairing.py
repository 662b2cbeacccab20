"""Pairing over Wi-Fi: the QR code, what the adb server hears in the network, and what it answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_core.devices.adb import pairing
from agent_core.devices.adb.pairing import PairingOffer, attach_paired, new_offer, pair_by_scan
from agent_core.devices.adb.parse import CONNECT, PAIRING, MdnsService, parse_mdns_services
from agent_core.devices.adb.program import find_adb, version_of
from agent_core.devices.adb.server import open_adb
from agent_core.errors import AdbNotFound, DeviceOffline, DeviceUnauthorized
from tests.support.adb import adb_server, bundled_program, system_program
from tests.support.adb_stand_in import GUID, HEARD, StandIn, standing_in


def test_the_code_has_the_form_that_phones_scan() -> None:
    assert PairingOffer("phonedesk-x", "secret").payload == "WIFI:T:ADB;S:phonedesk-x;P:secret;;"
    one, other = new_offer(), new_offer()
    assert one != other
    assert (one.service + one.password).replace("-", "").isalnum()  # nothing that the code's text would take apart


def test_what_the_server_hears() -> None:
    assert parse_mdns_services(HEARD) == (
        MdnsService("phonedesk-abc", PAIRING, "192.0.2.2:37861"),
        MdnsService(GUID, CONNECT, "192.0.2.2:37862"),
    )
    assert parse_mdns_services(f"x\t{PAIRING}.\t192.0.2.2:1\n\nbroken\n") == (MdnsService("x", PAIRING, "192.0.2.2:1"),)
    assert parse_mdns_services("") == ()


async def test_what_a_real_server_answers_when_it_cannot_pair() -> None:
    async with adb_server() as adb:
        server = await open_adb(port=adb.port)
        with pytest.raises(DeviceUnauthorized) as refused:
            await server.pair("127.0.0.1:1", "123456")
        # The server says the second if the refused connection ends before it has begun to listen to it.
        told = {"Unable to start pairing client", "Wrong password or connection was dropped"}
        assert refused.value.values["why"] in told
        with pytest.raises(DeviceOffline) as deaf:  # it was started without mDNS
            await pair_by_scan(server, new_offer())
        assert deaf.value.key == "no_mdns"


async def test_a_server_that_is_too_old_says_so() -> None:
    program = system_program()
    if program is None or b"29." not in subprocess.run([program, "version"], capture_output=True, check=True).stdout:
        pytest.skip("the system has no adb 29")
    carried = bundled_program()
    async with adb_server(program) as adb:
        server = await open_adb(port=adb.port)
        for asking in (server.pair("127.0.0.1:1", "123456"), pair_by_scan(server, new_offer())):
            with pytest.raises(AdbNotFound) as old:
                await asking
            if carried is None:
                assert old.value.key == "adb_too_old"
                continue
            assert old.value.key == "adb_server_old"  # it was started by somebody else: ours would be the newer one
            assert old.value.values["program"] == str(carried)
            assert f"adb -P {adb.port} kill-server" in old.value.advice
        assert await adb.run("get-state")  # it is not ended for that: others may be using it
    async with await open_adb(str(program), port=0) as named:
        with pytest.raises(AdbNotFound) as chosen:
            await named.pair("127.0.0.1:1", "123456")
        assert chosen.value.values["program"] == str(program)
        assert str(chosen.value.values["version"]).startswith("29.")
        assert chosen.value.key == ("adb_chosen_old" if carried else "adb_too_old")
        assert chosen.value.values["newer"] == (str(carried) if carried else "")


@pytest.mark.device
def test_an_old_adb_on_the_search_path_is_passed_over_for_one_that_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = bundled_program()
    if carried is None:
        pytest.skip("adbutils carries no adb for this machine")
    on_path = tmp_path / "adb"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("ADBUTILS_ADB_PATH", raising=False)
    for version, taken in (("29.0.6-debian", str(carried)), ("35.0.2", str(on_path))):
        on_path.write_text(f"#!/bin/sh\necho 'Android Debug Bridge version 1.0.41'\necho 'Version {version}'\n")
        on_path.chmod(0o755)
        version_of.cache_clear()
        assert find_adb() == taken
        assert find_adb(str(on_path)) == str(on_path)  # who names one gets it
    version_of.cache_clear()
    assert version_of(str(tmp_path / "none")).text == ""


async def test_a_phone_that_scans_is_paired_and_attached_once() -> None:
    own = f"{GUID}.{CONNECT}"
    stand_in = StandIn("secretsecret", HEARD, own)
    async with standing_in(stand_in) as server:
        assert await pair_by_scan(server, PairingOffer("phonedesk-abc", "secretsecret")) == own
    assert "host:pair:secretsecret:192.0.2.2:37861" in stand_in.asked
    assert not any(request.startswith("host:connect") for request in stand_in.asked)  # or it would be there twice


async def test_a_server_that_does_not_attach_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "OWN_SECONDS", 0.1)
    stand_in = StandIn("123456", HEARD)
    async with standing_in(stand_in) as server:
        name = await server.pair("192.0.2.2:37861", "123456")
        assert name == GUID
        assert await attach_paired(server, name, "192.0.2.2:37861") == "192.0.2.2:37862"


async def test_a_wrong_code_and_nobody_who_scans() -> None:
    async with standing_in(StandIn("123456", HEARD)) as server:
        with pytest.raises(DeviceUnauthorized) as wrong:
            await server.pair("192.0.2.2:37861", "654321")
        assert wrong.value.values["why"] == "Wrong password or connection was dropped"
        with pytest.raises(DeviceOffline) as nobody:
            await pair_by_scan(server, PairingOffer("phonedesk-other", "123456"), seconds=0)
        assert nobody.value.key == "not_scanned"
