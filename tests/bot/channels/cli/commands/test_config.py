"""``phonedesk config``, as a shell calls it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_core.owner import folder as own
from agent_core.texts import Lang
from bot.app import logs
from bot.app.doctor.report import CheckResult, CheckStatus
from bot.app.doctor.texts import DoctorTexts
from bot.app.settings.files import CONFIG_FILE
from bot.app.settings.loading import load, own_folder
from bot.channels.cli.commands.doctor import MARKS, _summary
from bot.channels.cli.main import app
from bot.channels.cli.terminal.console import Console
from tests.support.environment import without_settings
from tests.support.own import APP, MODEL, TOOL, write_own

TOKEN = "123456789:" + "A" * 34 + "z"
FILE = """# my shop
lang = "en"  # for me

[model]
# the big one
name = "of-file"
temperature = 0.5
"""


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    monkeypatch.setenv("COLUMNS", "200")


def call(*args: str, given: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["config", *args], input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def shown(*args: str) -> dict[str, dict[str, object]]:
    code, out, _ = call("show", *args, "--json")
    assert code == 0
    return {row["name"]: row for row in json.loads(out)}


def mode() -> int:
    return stat.S_IMODE(Path(CONFIG_FILE).stat().st_mode)


def test_each_setting_tells_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(CONFIG_FILE).write_text(FILE)
    Path(".env").write_text("PHONEDESK_MODEL__TOP_P=0.5\nPHONE_AGENT_KNOWLEDGE_TOKEN=a-knowledge-secret-x\n")
    monkeypatch.setenv("PHONEDESK_MODEL__NAME", "of-environment")
    monkeypatch.setenv("PHONEDESK_OBSERVE", '{"tree": "off"}')
    every = shown()
    of_name = every["model.name"]
    assert (of_name["value"], of_name["source"], of_name["where"]) == (
        "of-environment",
        "environment",
        "PHONEDESK_MODEL__NAME",
    )
    assert of_name["over"] == [{"source": "file", "where": "phonedesk.toml:6"}]
    places = {
        "model.top_p": ("env_file", "PHONEDESK_MODEL__TOP_P"),
        "model.temperature": ("file", "phonedesk.toml:7"),
        "knowledge.token": ("env_file", "PHONE_AGENT_KNOWLEDGE_TOKEN"),
        "observe.tree": ("environment", "PHONEDESK_OBSERVE"),
        "observe.ocr": ("default", ""),
        "lang": ("environment", "PHONEDESK_LANG"),
    }
    assert {name: (every[name]["source"], every[name]["where"]) for name in places} == places
    assert (every["model.api_key"]["value"], every["model.api_key"]["secret"]) == ("", True)
    assert set(shown("--changed")) == {*places, "model.name"} - {"observe.ocr"}
    assert set(shown("PHONEDESK_MODEL__NAME")) == {"model.name"}
    assert {name.split(".")[0] for name in shown("model")} == {"model"}
    out = call("show", "model.name")[1]
    assert "of-environment" in out
    assert "instead of phonedesk.toml:6" in out
    words = "Name of the model\n"
    assert words in out
    assert words not in call("show")[1], "what is set can be looked over without them"


def test_no_secret_is_shown_whatever_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "PHONEDESK_TELEGRAM__TOKEN": TOKEN,
        "PHONEDESK_MODEL__API_KEY": "short-key",
        "PHONEDESK_DATABASE_URL": "postgresql://desk:the-password@db/desk",
        "PHONEDESK_KNOWLEDGE__HTTP__HEADERS": '{"X-Key": "header-secret-1"}',
        "PHONEDESK_DEVICE__PINS": "S1=2749,S2=2749274927492749",
        "PHONEDESK_MODEL__FALLBACKS": '[{"base_url": "http://b/v1", "name": "b", "api_key": "fallback-secret"}]',
        "PHONEDESK_MODEL__EXTRA_BODY": '{"max_tokens": 3, "guard": {"api_key": "of-a-free-table"}}',
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    every = shown()
    assert every["telegram.token"]["value"] == "••••Az"
    assert every["model.api_key"]["value"] == "••••"
    assert every["database_url"]["value"] == "postgresql://<login>@db/desk"
    assert every["knowledge.http.headers"]["value"] == {"X-Key": "••••"}
    assert every["device.pins"]["value"] == {"S1": "••••", "S2": "••••"}
    for text in (json.dumps(every), call("show")[1], call("check", "--json")[1]):
        for secret in (TOKEN, "short-key", "the-password", "header-secret-1", "fallback-secret", "of-a-free-table"):
            assert secret not in text
        assert "2749" not in text


def test_a_pin_that_is_none_is_not_repeated() -> None:
    for written in ("S1=27491x", '{"S1": "27491x"}', '{"S1": 27491}', "27491x"):
        code, out, err = call("set", "device.pins", written)
        assert code != 0
        assert "27491" not in out + err
    assert call("set", "device.pins.S1", "02749")[0] == 0
    assert load().device.pins["S1"].get_secret_value() == "02749"
    assert mode() == 0o600


def test_setting_one_leaves_the_rest_of_the_file_as_it_is() -> None:
    Path(CONFIG_FILE).write_text(FILE)
    Path(CONFIG_FILE).chmod(0o644)
    assert call("set", "PHONEDESK_MODEL__NAME", "new")[0] == 0
    assert Path(CONFIG_FILE).read_text() == FILE.replace("of-file", "new")
    assert mode() == 0o644
    assert call("set", "device.connect", "a:1,b:2")[0] == 0
    assert call("set", "device.names.192.168.1.20:5555", "Counter")[0] == 0
    assert call("set", "model.extra_body", '{"top_k": 3}')[0] == 0
    assert call("set", "observe.elements", "off")[0] == 0
    settings = load()
    assert (settings.device.connect, settings.device.names) == (("a:1", "b:2"), {"192.168.1.20:5555": "Counter"})
    assert (settings.model.extra_body, settings.observe.elements) == ({"top_k": 3}, False)
    for name in ("device.names.192.168.1.20:5555", "device.connect", "model.extra_body", "observe.elements"):
        assert call("unset", name)[0] == 0
    assert Path(CONFIG_FILE).read_text().strip() == FILE.replace("of-file", "new").strip()
    assert "Nothing to change" in call("unset", "device.connect")[1]


def test_a_secret_comes_by_standard_input_into_a_file_of_its_user() -> None:
    code, out, err = call("set", "telegram.token", "-", given=f"{TOKEN}\n")
    assert (code, mode()) == (0, 0o600)
    assert load().telegram.token.get_secret_value() == TOKEN
    assert TOKEN not in out + err
    assert "restart" in out
    told = json.loads(call("set", "model.temperature", "0.1", "--json")[1])
    assert (told["name"], told["file"], told["over"]) == ("model.temperature", CONFIG_FILE, [])
    assert all(told[name] is True for name in ("changed", "live", "read"))
    assert mode() == 0o600
    assert call("unset", "telegram.token")[0] == 0
    Path(CONFIG_FILE).chmod(0o644)
    assert call("set", "model.extra_body", '{"guard": {"api_key": "of-a-free-table"}}')[0] == 0
    assert mode() == 0o600
    assert "shell's history" in call("set", "model.api_key", "typed")[2]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("modl.name", "x", "Did you mean model.name?"),
        ("PHONEDESK_MODEL_NAME", "x", "Did you mean model.name?"),
        ("model.top_p", "7", "not be greater than 1"),
        ("web.port", "many", "a whole number"),
        ("timezone", "Asia/Nowhere", "There is no time zone “Asia/Nowhere”"),
        ("telegram.mode", "webhook", "needs webhook_url"),
        ("model.fallbacks", '[{"name": "b"}]', "model.fallbacks.0.base_url It is missing."),
        ("model.extra_body", "{a", "table (JSON)"),
        ("log_file", "no-such-folder/serve.log", "no-such-folder"),
        ("knowledge.provider", "dify", "lacks a setting: PHONEDESK_KNOWLEDGE__BASE_URL"),
        ("device.names", '{"a": "One", "b": "one"}', "the same name"),
        ("model", "{}", "There is no setting model"),
        ("price.models.m-4.5v.tokens_in", "3", """config set price.models.m-4.5v '{"tokens_in": 3, …}'"""),
        ("price.models.m-4.5v", '{"tokens_in": "much", "tokens_out": 1}', "price.models.m-4.5v.tokens_in"),
    ],
)
def test_what_is_wrong_is_not_written(name: str, value: str, said: str) -> None:
    Path(CONFIG_FILE).write_text(FILE)
    code, _, err = call("set", name, value)
    assert code == 2
    assert said in " ".join(err.split())
    assert Path(CONFIG_FILE).read_text() == FILE


def test_what_a_layer_above_hides_is_checked_too_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_WEB__PORT", "1")
    assert call("set", "web.port", "70000")[0] == 2
    code, out, _ = call("set", "web.port", "8000")
    assert code == 0
    assert "environment: PHONEDESK_WEB__PORT" in out
    out = call("set", "web.port", "8000", "--file", "other.toml")[1]
    assert "phonedesk reads phonedesk.toml, not this file" in " ".join(out.split())


def test_it_speaks_the_language_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHONEDESK_LANG")
    assert "写入" in call("set", "lang", "zh")[1]
    assert "is written to" in call("set", "lang", "en")[1] + call("set", "model.name", "m")[1]
    assert "There is no setting" in call("set", "modl.name", "m")[2]


def test_a_file_with_two_mistakes_is_mended_one_by_one() -> None:
    Path(CONFIG_FILE).write_text("[model]\ntop_p = 7\n[web]\nport = -1\n")
    assert call("set", "web.port", "0")[0] == 0
    assert call("set", "web.port", "-1")[0] == 2
    assert call("unset", "model.top_p")[0] == 0
    assert (load().web.port, load().model.top_p) == (0, 0.85)


def test_with_doubts_alone_the_settings_can_be_used_and_the_doubts_are_counted() -> None:
    assert "All settings are right." in call("check")[1]
    Path(".env").write_text("PHONEDESK_TIMEZON=x\nno name\n")
    code, out, _ = call("check")
    assert code == 0
    assert "✓ The settings can be used. Look at 2 things marked with ! above." in out
    assert "All settings are right" not in out


def test_check_names_each_wrong_one_and_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("check")[0] == 0
    Path(CONFIG_FILE).write_text('[model]\nnaem = "x"\ntop_p = 7\n')
    Path(".env").write_text("PHONEDESK_WEB__PORT=many\nPHONEDESK_TIMEZON=x\nno name\n")
    monkeypatch.setenv("PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS", "soon")
    code, out, _ = call("check", "--json")
    found = json.loads(out)
    assert code == 2
    assert {(one["name"], one["where"], one["meant"]) for one in found["wrong"]} == {
        ("model.naem", "phonedesk.toml:2", "model.name"),
        ("model.top_p", "phonedesk.toml:3", ""),
        ("web.port", ".env: PHONEDESK_WEB__PORT", ""),
    }
    assert [(one["name"], one["meant"]) for one in found["doubtful"]] == [
        ("PHONEDESK_TIMEZON", "PHONEDESK_TIMEZONE"),
        ("PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS", ""),
        (".env:3", ""),
    ]
    out = call("check")[1]
    for said in ("model.naem", "phonedesk.toml:3", "Did you mean model.name?", "phonedesk doctor"):
        assert said in out
    Path(CONFIG_FILE).write_text("[model\n")
    Path(".env").unlink()
    assert call("check")[0] == 2
    Path(CONFIG_FILE).write_text('[knowledge]\nprovider = "dify"\n')
    out = call("check")[1]
    assert "knowledge.provider  (phonedesk.toml:2)" in out
    assert "PHONEDESK_KNOWLEDGE__BASE_URL" in out
    assert "are right" not in out
    # What is wrong is told whole: a name that is none hides nothing else.
    Path(CONFIG_FILE).write_text(
        'log_levle = "info"\ntimezone = "x"\n[model]\nbase_url = "localhost:8000"\ntop_p = 7\n'
    )
    found = json.loads(call("check", "--json")[1])["wrong"]
    assert {one["name"]: one["meant"] for one in found} == {
        "log_levle": "log_level",
        "timezone": "",
        "model.base_url": "",
        "model.top_p": "",
    }
    assert all(one["where"] for one in found)


def test_check_names_the_files_and_variables_that_were_read_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> tuple[str, dict[str, list[str]]]:
        return call("check")[1], json.loads(call("check", "--json")[1])["read"]

    out, found = read()
    assert (CONFIG_FILE in out, ".env" in out) == (False, False)
    assert "environment variables read: PHONEDESK_LANG" in out
    assert found["files"] == []
    Path(".env").write_text("PHONEDESK_MODEL__TOP_P=0.5\n")
    Path(CONFIG_FILE).write_text(FILE)
    monkeypatch.setenv("PHONEDESK_MODEL__API_KEY", "a-secret-of-the-model")
    monkeypatch.setenv("PHONEDESK_MODEL__EMPTY", "")
    monkeypatch.setenv("PHONEDESK_NO_SUCH", "1")
    out, found = read()
    assert f"files read: .env, {CONFIG_FILE}" in out
    assert "a-secret" not in out
    assert found["files"] == [".env", CONFIG_FILE]
    assert "PHONEDESK_MODEL__API_KEY" in found["environment"]
    assert not {"PHONEDESK_MODEL__EMPTY", "PHONEDESK_NO_SUCH"} & set(found["environment"])
    for name in [name for name in os.environ if name.startswith("PHONEDESK_")]:
        monkeypatch.delenv(name)
    for file in (".env", CONFIG_FILE):
        Path(file).unlink()
    assert call("check")[1].count(CONFIG_FILE) == 1, "that there is none"


def test_a_wrong_value_of_the_command_line_blames_its_option_and_no_file() -> None:
    Path(".env").write_text("PHONEDESK_MODEL__BASE_URL=http://127.0.0.1:9/v1\n")
    done = CliRunner().invoke(app, ["run", "打开设置", "--endpoint", "127.0.0.1:8000"])
    assert done.exit_code == 2
    assert "--endpoint 127.0.0.1:8000" in done.output
    assert ".env" not in done.output


def test_it_says_in_the_users_language_why_a_value_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "zh")
    err = call("set", "model.temperature", "9")[2]
    assert "不能大于 2" in err
    assert "没有改动" in err
    assert "config check" not in err  # nothing was changed: it would find nothing
    assert "Input" not in err
    Path(CONFIG_FILE).write_text("[model]\ntemperature = 9\n")
    assert "你是指 model.name 吗" in call("set", "modl.name", "x")[2]
    err = call("show")[2]
    assert "✗ model.temperature  (phonedesk.toml:2)" in err
    assert "不能大于 2" in err


def test_the_file_stays_its_owners_and_its_groups() -> None:
    Path(CONFIG_FILE).write_text('[model]\nname = "old"\n')
    if os.geteuid() == 0:
        os.chown(CONFIG_FILE, 4321, 1234)
    before = Path(CONFIG_FILE).stat()
    # With a secret in it, only a file that was closed to all others stays readable for its group.
    for was, becomes in ((0o640, 0o640), (0o660, 0o660), (0o600, 0o600), (0o644, 0o600)):
        Path(CONFIG_FILE).chmod(was)
        assert call("set", "model.api_key", "-", given=f"a-key-{was}\n")[0] == 0
        now = Path(CONFIG_FILE).stat()
        assert (now.st_uid, now.st_gid, mode()) == (before.st_uid, before.st_gid, becomes)


def test_a_value_with_a_minus_and_one_from_nowhere() -> None:
    assert call("set", "alerts.chat", "-1001234567890")[0] == 0
    assert load().alerts.chat == "-1001234567890"
    assert call("set", "telegram.token", "-", given=TOKEN)[0] == 0
    code, _, err = call("set", "telegram.token", "-", given="")
    assert code == 2
    assert "phonedesk config unset telegram.token" in err
    assert call("set", "telegram.token", "-", given="two\nlines\n")[0] == 2
    assert load().telegram.token.get_secret_value() == TOKEN
    Path(CONFIG_FILE).chmod(0o400)
    code, _, err = call("set", "model.name", "m")
    assert (code, "read-only" in err, load().model.name) == (2, True, "autoglm-phone-9b")


def test_an_entry_of_a_table_and_a_level_as_other_programs_write_it() -> None:
    assert call("set", "price.models.m-4.5v", '{"tokens_in": 3, "tokens_out": 4}')[0] == 0
    assert call("set", "price.models.m-4.5v.tokens_in", "5")[0] == 0
    assert call("set", "log_level", "INFO")[0] == 0
    price = load().price.models["m-4.5v"]
    assert (price.tokens_in, price.tokens_out, load().log_level) == (5, 4, "info")
    assert call("unset", "price.models.m-4.5v")[0] == 0
    assert load().price.models == {}


def test_what_is_right_is_shown_beside_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(CONFIG_FILE).write_text(FILE.replace("0.5", "9") + '[telegram]\nmode = "webhook"\n')
    monkeypatch.setenv("PHONEDESK_DATABASE_URL", "postgresql:/desk:the-password@db/desk")
    monkeypatch.setenv("PHONEDESK_PRICE__MODELS", "{a")
    code, out, err = call("show", "--changed", "--json")
    assert code == 2
    every = {row["name"]: (row["value"], row["wrong"]) for row in json.loads(out)}
    assert every == {
        "lang": ("en", False),
        "model.name": ("of-file", False),
        "model.temperature": (9, True),
        "telegram.mode": ("webhook", False),
        "database_url": ("••••", True),
        "price.models": ("••••", True),
    }
    for name in ("model.temperature  (phonedesk.toml:7)", "telegram  (", "database_url  (", "price.models  ("):
        assert f"✗ {name}" in err
    assert "✗ 9" in call("show", "model")[1]
    Path(CONFIG_FILE).write_text("[model\n")
    code, out, err = call("show", "--changed")
    assert (code, "✗ ••••" in out, "✗ phonedesk.toml cannot be read" in err) == (2, True, True)
    assert "the-password" not in out + err


def test_the_text_of_a_table_that_is_none_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = '{"api_key": "of-a-free-table"'
    Path(CONFIG_FILE).write_text(f"[model]\nextra_body = '{secret}}}'\n")
    said = [call("show"), call("show", "--json")]
    monkeypatch.setenv("PHONEDESK_MODEL__EXTRA_BODY", secret + ', "x": ')
    said += [call("show"), call("show", "--json")]
    for code, out, err in said:
        assert (code, "••••" in out, "of-a-free-table" in out + err) == (2, True, False)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    "name", ["PHONEDESK_MODEL__FALLBACKS", "phonedesk_price__models", "PHONEDESK_PRICE", "PHONEDESK_MODEL__EXTRA_BODY"]
)
@pytest.mark.parametrize("in_file", [False, True])
def test_plain_text_for_a_table_hides_no_other_variable(
    name: str, in_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = name.lower().removeprefix("phonedesk_").replace("__", ".")
    Path(".env").write_text("PHONEDESK_MODEL__TEMPERATURE=0.75\n" + (f"{name}=abc\n" if in_file else ""))
    if not in_file:
        monkeypatch.setenv(name, "abc")
    monkeypatch.setenv("PHONEDESK_MODEL__TOP_P", "0.25")
    code, out, err = call("show", "--changed")
    assert (code, "0.25" in out, "0.75" in out) == (2, True, True)
    assert (f"✗ {key}  (" in err, name.upper() in err.upper()) == (True, True)
    code, out, _ = call("check")
    assert (code, f"✗ {key}  (" in out) == (2, True)
    assert "default" not in call("show", "--changed", "device")[1]


def test_a_secret_in_a_free_table_is_told_of_too() -> None:
    for name, value, hint in (
        ("model.extra_body.api_key", "of-a-free-table", "config set model.extra_body.api_key -"),
        ("model.extra_body", '{"guard": {"token": "of-a-free-table"}}', "config set model.extra_body -"),
    ):
        logs._known.clear()
        code, out, err = call("set", name, value)
        assert (code, hint in err, "of-a-free-table" in out + err) == (0, True, False)
        assert logs.mask("said of-a-free-table") == "said <secret>"
    assert call("set", "model.extra_body.top_k", "3")[2] == ""


def test_names_and_values_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("PHONEDESK_MODEL__BASE_URL", f"http://127.0.0.1/{'long/' * 10}v1")
    value, place, _ = call("show", "model.base_url")[1].splitlines()[-3:]
    assert value.endswith(f"http://127.0.0.1/{'long/' * 10}v1")
    assert place.endswith("PHONEDESK_MODEL__BASE_URL")


def test_a_mistake_elsewhere_does_not_keep_one_from_mending() -> None:
    Path(CONFIG_FILE).write_text('[model]\ntop_p = 7\n[knowledge]\nprovider = "dify"\n')
    assert call("unset", "model.top_p")[0] == 0
    assert call("set", "knowledge.base_url", "http://127.0.0.1:9")[0] == 0


OWN = {"models/shop.toml": MODEL.format(name="shop-"), "apps/dd.toml": APP, "tools/shop.py": TOOL}


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """A command has this process read the owner's files."""
    yield
    own.use(None)


@pytest.mark.usefixtures("nothing_left")
def test_the_owners_folder_lies_beside_the_file_or_where_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_folder(load()) is None
    write_own(Path(own.FOLDER), OWN)
    assert own_folder(load()) == Path(own.FOLDER)
    Path("etc").mkdir()
    Path("etc/desk.toml").write_text("")
    monkeypatch.setenv("PHONEDESK_CONFIG", "etc/desk.toml")
    assert own_folder(load()) is None
    write_own(Path("etc") / own.FOLDER, {})
    assert own_folder(load()) == Path("etc") / own.FOLDER
    write_own(Path("mine"), OWN)
    monkeypatch.setenv("PHONEDESK_OWN_DIR", "mine")
    monkeypatch.setenv("PHONEDESK_MODEL__PROFILE", "shop")
    assert own_folder(load()) == Path("mine")
    code, out, _ = call("check")
    assert code == 0
    assert "mine (models 1, apps 1, tools 1)" in out
    assert "not given stock_of" in out
    monkeypatch.setenv("PHONEDESK_OWN_DIR", "nowhere")
    found = json.loads(call("check", "--json")[1])["wrong"]
    assert [(one["name"], one["where"], one["message"]) for one in found] == [
        ("own_dir", "environment: PHONEDESK_OWN_DIR", "There is no folder nowhere.")
    ]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_is_wrong_in_the_owners_folder_is_told_with_file_and_line(
    lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    wrong = {
        "models/shop.toml": OWN["models/shop.toml"] + "vison = true\n",
        "apps/dd.toml": APP.replace(">=7", "7+"),
        "prompts/autoglm-phone.zh.txt": "a\n$today",
        "tools/shop.py": "def (",
    }
    write_own(Path(own.FOLDER), wrong)
    code, out, _ = call("check", "--json")
    assert code == 2
    found = {one["where"] or one["name"]: (one["name"], one["message"]) for one in json.loads(out)["wrong"]}
    assert list(found) == [
        "phonedesk.d/models/shop.toml:5",
        "phonedesk.d/apps/dd.toml:10",
        "phonedesk.d/tools/shop.py:1",
    ]
    assert [name for name, _ in found.values()] == ["vison", "layers.0.versions", "phonedesk.d/tools/shop.py:1"]
    assert found["phonedesk.d/tools/shop.py:1"][1].startswith(
        "不是正确的 Python" if lang == "zh" else "This is no Python"
    )
    assert found["phonedesk.d/models/shop.toml:5"][1] == (
        "没有这个字段。" if lang == "zh" else "There is no such field."
    )
    # No other command begins with such files, and each says why.
    done = CliRunner().invoke(app, ["kb", "stats"])
    assert done.exit_code == 2
    assert "phonedesk.d/apps/dd.toml:10" in done.stderr
    # The settings themselves are shown as they are.
    code, out, err = call("show", "model.name")
    assert (code, "autoglm-phone-9b" in out, "phonedesk.d/tools/shop.py:1" in err) == (2, True, True)


def test_names_that_neither_we_nor_the_owner_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own(Path(own.FOLDER), OWN)
    Path(CONFIG_FILE).write_text(
        '[model]\nprofile = "shop"\n\n[[model.fallbacks]]\nbase_url = "http://x"\nname = "y"\nprofile = "shoe"\n'
    )
    monkeypatch.setenv("PHONEDESK_PLANNER__TOOLS", "get_battery,stock_of,price_of,stock_of")
    found = json.loads(call("check", "--json")[1])["wrong"]
    assert [one["name"] for one in found] == ["model.fallbacks.0.profile", "planner.tools"]
    assert "“shoe”; there are auto, autoglm-phone" in found[0]["message"]
    assert "“price_of”; there are search_knowledge, get_battery, stock_of" in found[1]["message"]
    assert call("set", "model.profile", "shoe")[0] == 2


@pytest.mark.usefixtures("nothing_left")
def test_a_tool_that_fails_while_it_is_run_is_found_before_the_first_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own(Path(own.FOLDER), {"tools/shop.py": TOOL.replace("import asyncio", "import asyncio, no_such_module")})
    assert call("check")[0] == 0  # nobody uses it
    monkeypatch.setenv("PHONEDESK_PLANNER__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PHONEDESK_PLANNER__NAME", "text")
    monkeypatch.setenv("PHONEDESK_PLANNER__TOOLS", "stock_of")
    code, out, _ = call("check")
    assert code == 2
    assert "phonedesk.d/tools/shop.py:3" in out
    assert "ModuleNotFoundError: No module named 'no_such_module'" in out


@pytest.mark.parametrize(("lang", "would", "does"), [("zh", "应写在", "写在"), ("en", "would stand in", "stand in")])
def test_where_settings_stand_and_would_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: Lang, would: str, does: str
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = CheckResult("model", "Model", CheckStatus.FAILED, "x", "PHONEDESK_MODEL__NAME")
    for there, said in ((False, would), (True, does)):
        if there:
            (tmp_path / ".env").touch()
        console = Console(record=True, width=300, quiet=False)
        _summary(console, [wrong], DoctorTexts(lang))
        shown = console.export_text()
        assert f"{said} {tmp_path / '.env'}" in shown
        assert (would in shown) != there


@pytest.mark.parametrize(
    ("lang", "counted", "to_mend"),
    [
        ("zh", "共 3 项：1 项正常、2 项不通过。", "没有通过：Model、Screen。请先解决第一项"),
        ("en", "3 checks: 1 fine, 2 failed.", "Failed: Model, Screen. Mend the first of them"),
    ],
)
def test_the_end_of_an_examination_is_in_words_and_names_what_failed(lang: Lang, counted: str, to_mend: str) -> None:
    results = [
        CheckResult("settings", "Settings", CheckStatus.OK, "x"),
        CheckResult("model", "Model", CheckStatus.FAILED, "x"),
        CheckResult("screen", "Screen", CheckStatus.FAILED, "x"),
    ]
    console = Console(record=True, width=300, quiet=False)
    _summary(console, results, DoctorTexts(lang))
    shown = console.export_text()
    assert counted in shown
    assert to_mend in shown
    assert not any(mark in shown for mark, _ in MARKS.values() if mark not in ".!·")


@pytest.mark.parametrize(("lang", "said"), [("zh", "--fix 什么也没有改"), ("en", "--fix changed nothing")])
def test_a_doctor_who_is_to_mend_says_that_there_was_nothing_to_mend(lang: Lang, said: str) -> None:
    well = CheckResult("screen", "Screen", CheckStatus.OK, "on")
    for mend, result, told in ((True, well, True), (True, replace(well, mending=True), False), (False, well, False)):
        console = Console(record=True, width=300, quiet=False)
        _summary(console, [result], DoctorTexts(lang), mend=mend)
        assert (said in console.export_text()) is told
