from __future__ import annotations

import json
import logging
import stat
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr

from agent_core.errors import ConfigInvalid
from bot.app import logs

TOKEN = "1234567890:" + "AAE-x_" * 6
NUMBERS = ("+8613812345678", "8613812345678", "+86 138 1234 5678", "86-138-1234-5678", "138-1234-5678", "138 1234 5678")
URL = f"https://api.telegram.org/bot{TOKEN}/getMe"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (TOKEN, "<bot>"),
        (URL, "https://api.telegram.org/bot<bot>/getMe"),
        (f"{TOKEN[:-1]}-", "<bot>"),
        ("Authorization: Bearer abcdefgh.ijk", "Authorization: <bearer>"),
        ("key sk-abcdefghijkl0", "key <key>"),
        ("dataset-abcdefghijkl0", "<key>"),
        ("postgresql://desk:pa$$word@db/desk", "postgresql://<login>@db/desk"),
        ("call 13812345678 now", "call <phone> now"),
        *((f"call {number}.", "call <phone>.") for number in NUMBERS),
        ("order 2138123456789", "order 2138123456789"),
        ("at 1732185600.123, 1732185600123", "at 1732185600.123, 1732185600123"),
        ("pdk_abcdefghijkl0", "<key>"),
        ("https://T0KEN@git.example/x?to=a@b", "https://<login>@git.example/x?to=a@b"),
        ("http://h/x?to=a@b", "http://h/x?to=a@b"),
        ("at 10:30, http://127.0.0.1:8000/v1", "at 10:30, http://127.0.0.1:8000/v1"),
        ("http://h/v1?key=QSECRET99&page=2", "http://h/v1?key=<secret>&page=2"),
        ("/v1?a=1&access_token=x%20y&api-key=z'", "/v1?a=1&access_token=<secret>&api-key=<secret>'"),
        ("?sign=5f&X-Amz-Signature=ab monkey=1", "?sign=<secret>&X-Amz-Signature=<secret> monkey=1"),
        ("?design=1&keyword=q&tokens=3", "?design=1&keyword=q&tokens=3"),
    ],
)
def test_what_is_secret_by_its_looks(text: str, masked: str) -> None:
    assert logs.mask(text) == masked


def test_secrets_of_the_settings_are_known_word_for_word() -> None:
    logs.configure(secrets=["plain-looking-key", "demo", ""])
    assert logs.mask("it is plain-looking-key, said the demo") == "it is <secret>, said the demo"
    logs.know("plain-looking-key"[:length] for length in range(8, 17))
    assert logs.mask("it is plain-looking-key") == "it is <secret>"


def fail() -> None:
    token = TOKEN
    variable = "-".join(["only", "in", "a", "variable"])
    raise RuntimeError(f"GET https://x/bot{token}/getMe {len(variable)}")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_traceback_holds_no_secret(as_json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", json=as_json)
    try:
        fail()
    except RuntimeError:
        structlog.get_logger().exception("went_wrong", url=URL)
    out, err = capfd.readouterr()
    assert out == ""
    assert "RuntimeError: GET https://x/bot<bot>/getMe 18" in err
    assert "only-in-a-variable" not in err
    assert TOKEN not in err
    if as_json:
        line = json.loads(err)
        assert (line["event"], line["level"], line["url"]) == ("went_wrong", "error", URL.replace(TOKEN, "<bot>"))


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_inside_a_value_slips_through(as_json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", json=as_json)
    structlog.get_logger().info(
        "did",
        deep={"a": [{"b": URL}]},
        error=ValueError(TOKEN),
        secret=SecretStr("word"),
        count=3,
        none=None,
        many=(TOKEN,),
    )
    err = capfd.readouterr().err
    assert TOKEN not in err
    assert "word" not in err
    if as_json:
        line = json.loads(err)
        assert line["deep"]["a"][0]["b"] == URL.replace(TOKEN, "<bot>")
        assert (line["count"], line["none"]) == (3, None)


def test_libraries_are_masked_too_and_speak_from_warning_on(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("debug")
    library = logging.getLogger("some.library")
    library.info("not heard")
    try:
        fail()
    except RuntimeError:
        library.exception("polling %s", URL)
    err = capfd.readouterr().err
    assert "not heard" not in err
    assert "RuntimeError" in err
    assert TOKEN not in err


@pytest.mark.parametrize(("level", "heard"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level(level: str, heard: int, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure(level)
    log = structlog.get_logger()
    for name in logs.LEVELS:
        getattr(log, name)("said")
    assert capfd.readouterr().err.count("said") == heard


def lines_of(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_file_holds_json_lines_of_ours_and_of_libraries_without_secrets(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "desk.log"
    logs.configure("info", secrets=["plain-looking-key"], file=logs.LogFile(file))
    with structlog.contextvars.bound_contextvars(run_id="r1", serial="S1"):
        structlog.get_logger().info("第一步", url=URL, deep=[{"plain-looking-key": {"a": ("plain-looking-key",)}}])
        try:
            fail()
        except RuntimeError:
            logging.getLogger("some.library").exception("polling %s with plain-looking-key", URL)
            structlog.get_logger().exception("went_wrong")
    structlog.get_logger().debug("not at this level")
    logs.set_level("debug")
    structlog.get_logger().debug("now")
    ours, library, wrong, now = lines_of(file)
    assert (ours["event"], ours["level"], ours["run_id"], ours["serial"]) == ("第一步", "info", "r1", "S1")
    assert ours["deep"] == [{"<secret>": {"a": ["<secret>"]}}]
    assert (library["logger"], library["level"], library["run_id"]) == ("some.library", "error", "r1")
    assert "RuntimeError: GET https://x/bot<bot>/getMe" in str(library["exception"])
    assert "RuntimeError: GET https://x/bot<bot>/getMe" in str(wrong["exception"])
    assert now["event"] == "now"
    text = file.read_text(encoding="utf-8")
    assert TOKEN not in text
    assert "plain-looking-key" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    err = capfd.readouterr().err
    assert "第一步" in err
    assert "{" not in err.splitlines()[-1]  # people read the terminal


def test_the_file_is_put_aside_when_it_is_full(tmp_path: Path) -> None:
    file = tmp_path / "desk.log"
    logs.configure("info", file=logs.LogFile(file, megabytes=0.001, kept=2))
    for number in range(60):
        structlog.get_logger().info("said", number=number)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["desk.log", "desk.log.1", "desk.log.2", "desk.log.lock"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
    assert lines_of(file)[-1]["number"] == 59


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"cannot be written.*PHONEDESK_LOG_FILE"):
        logs.configure(file=logs.LogFile(tmp_path / "missing" / "desk.log"))
    logs.configure(file=logs.LogFile(tmp_path / "desk.log"))
    second = logs.LogFile(tmp_path / "desk.log")
    with pytest.raises(ConfigInvalid, match=r"Another process.*\{host\}"):
        logs._opened(second)


def test_what_ends_the_process_is_masked_too(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    try:
        fail()
    except RuntimeError as error:
        logs.uncaught(type(error), error, error.__traceback__)
    err = capfd.readouterr().err
    assert "RuntimeError: GET https://x/bot<bot>/getMe" in err
    assert TOKEN not in err
