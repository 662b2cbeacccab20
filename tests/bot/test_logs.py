from __future__ import annotations

import json
import logging

import pytest
import structlog
from pydantic import SecretStr

from bot import logs

TOKEN = "1234567890:" + "AAE-x_" * 6
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
        ("order 2138123456789", "order 2138123456789"),
        ("at 10:30, http://127.0.0.1:8000/v1", "at 10:30, http://127.0.0.1:8000/v1"),
    ],
)
def test_what_is_secret_by_its_looks(text: str, masked: str) -> None:
    assert logs.mask(text) == masked


def test_secrets_of_the_settings_are_known_word_for_word() -> None:
    logs.configure(secrets=["plain-looking-key", "demo", ""])
    assert logs.mask("it is plain-looking-key, said the demo") == "it is <secret>, said the demo"


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
