"""``phonedesk init`` at a real terminal."""

from __future__ import annotations

import os
import re
import socket
import stat
import string
import sys
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from agent_core.model.profile import BY_NAME, model_profile, profile_of_model
from agent_core.texts import Lang, load_texts
from bot.app.settings.loading import load
from bot.app.settings.sections import TemplateSettings
from bot.app.setup.interview import write_env
from bot.app.setup.presets import KnowledgePreset, knowledge_presets, model_presets
from bot.app.setup.texts import SetupTexts
from tests.support.environment import without_settings
from tests.support.terminal import Terminal

pytestmark = pytest.mark.rotating(parts=2)

TOKEN = "123456789:AAF" + "x" * 32
LATER = str(len(model_presets()) + 2)
PHONE = "192.168.1.20:5555"  # in the question for the phone


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "200",
        "PYTHONUTF8": "1",
        "PHONEDESK_DEVICE__ADB_PORT": "1",
        "PHONEDESK_DEVICE__ADB_PATH": "/nowhere/adb",
        "PHONEDESK_OBSERVE__OCR": "off",
    }


@pytest.fixture
def terminal(tmp_path: Path, environment: dict[str, str]) -> Iterator[Terminal]:
    made = Terminal([sys.executable, "-m", "bot", "init", "--lang", "en"], tmp_path, environment)
    yield made
    made.close()


@pytest.mark.rotating(parts=1)
def test_from_nothing_to_a_file_that_is_checked(terminal: Terminal, tmp_path: Path) -> None:
    terminal.answers("Language", "2")
    terminal.answers("Time zone", "Asia/Nowhere")
    terminal.answers("Asia/Nowhere", "Beijing")
    assert "novita" in terminal.waits("Which model").lower()
    terminal.type("4")
    terminal.answers("API key", "sk-a-key-of-mine")
    terminal.answers("The phone", "192.168.1.20")
    terminal.answers("no address of a phone", "http://192.168.1.20:5555")
    terminal.answers("no address of a phone", "127.0.0.1:1")
    terminal.answers("BotFather", "not a token")
    terminal.answers("That is no bot's token", TOKEN)
    terminal.answers("Proxy", "socks5://127.0.0.1:1")
    terminal.answers("Where do the answers come from", "2")
    summary = terminal.waits("Write it")
    assert "PHONEDESK_MODEL__API_KEY=***" in summary
    terminal.type("")
    assert terminal.ended() == 1  # there is neither a phone nor a network
    assert "Telegram bot" in terminal.seen
    assert "not checked, because of" in terminal.seen
    assert terminal.seen.rstrip().splitlines()[-1].lstrip().startswith("phonedesk serve")
    for secret in ("sk-a-key-of-mine", TOKEN):
        assert secret not in terminal.seen
    file = tmp_path / ".env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines() if not line.startswith("#"))
    assert {name: value.strip("'") for name, value in lines.items()} == {
        "PHONEDESK_LANG": "en",
        "PHONEDESK_TIMEZONE": "Asia/Shanghai",
        "PHONEDESK_MODEL__BASE_URL": "https://api.novita.ai/openai",
        "PHONEDESK_MODEL__NAME": "zai-org/autoglm-phone-9b-multilingual",
        "PHONEDESK_PRICE__TOKENS_IN": "0.035",
        "PHONEDESK_PRICE__TOKENS_OUT": "0.138",
        "PHONEDESK_PRICE__CURRENCY": "USD",
        "PHONEDESK_MODEL__API_KEY": "sk-a-key-of-mine",
        "PHONEDESK_DEVICE__SERIAL": "127.0.0.1:1",
        "PHONEDESK_TELEGRAM__TOKEN": TOKEN,
        "PHONEDESK_TELEGRAM__PROXY": "socks5://127.0.0.1:1",
        "PHONEDESK_KNOWLEDGE__PROVIDER": "embedded",
        "PHONEDESK_KNOWLEDGE__SAMPLE": "true",
    }


def test_a_second_time_enter_keeps_everything_and_the_language_changes(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    before = (
        f"# mine\nPHONEDESK_LANG=en\nPHONEDESK_TIMEZONE=Asia/Tokyo\nPHONEDESK_TELEGRAM__TOKEN={TOKEN}\n"
        "PHONEDESK_MODEL__BASE_URL=http://localhost:1/v1\nPHONEDESK_MODEL__NAME=mine\n"
        "PHONEDESK_RUN__MAX_STEPS=50\n"
    )
    (tmp_path / ".env").write_text(before)
    terminal = Terminal([sys.executable, "-m", "bot", "init"], tmp_path, environment)
    try:
        terminal.answers("Language", "中文")
        for asked in (
            "时区",
            "哪个模型",
            "接口地址",
            "名字",
            "API 密钥",
            "哪部手机",
            "BotFather",
            "代理",
            "答案从哪里来",
            "写入吗",
        ):
            terminal.answers(asked, "")
        assert terminal.ended() == 1
        assert "phonedesk kb import" in terminal.seen
    finally:
        terminal.close()
    after = (tmp_path / ".env").read_text()
    assert "# mine" in after
    assert "PHONEDESK_RUN__MAX_STEPS=50" in after
    assert "PHONEDESK_LANG=zh" in after.replace("'", "")
    assert "Asia/Tokyo" in after
    assert TOKEN in after
    assert (tmp_path / ".env.old").read_text() == before
    assert stat.S_IMODE((tmp_path / ".env.old").stat().st_mode) == 0o600


def test_a_secret_is_removed_by_none(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / ".env").write_text(f"PHONEDESK_TELEGRAM__TOKEN={TOKEN}\nPHONEDESK_TELEGRAM__PROXY=none\n")
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", "en"], tmp_path, environment)
    try:
        for asked, said in (
            ("Language", ""),
            ("Time zone", ""),
            ("Which model", str(len(model_presets()) + 2)),
            ("The phone", ""),
            ("none removes it", "none"),
            ("Where do the answers", "2"),
            ("Write it", ""),
        ):
            terminal.answers(asked, said)
        terminal.ended()
    finally:
        terminal.close()
    assert TOKEN not in (tmp_path / ".env").read_text()


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_virtual_phone_comes_with_the_demo_model(tmp_path: Path, environment: dict[str, str], lang: str) -> None:
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", lang], tmp_path, environment)
    try:
        demo = next(number for number, one in enumerate(model_presets(), 1) if one.key == "demo")
        for asked, said in (
            ("Language", ""),
            ({"zh": "时区", "en": "Time zone"}[lang], "北京"),
            ({"zh": "配虚拟手机用", "en": "for the virtual phone"}[lang], str(demo)),
            ("phonedesk virtual-phone --port 16001", "abc"),
            ({"zh": "要带端口", "en": "with the port"}[lang], "127.0.0.1:99999"),
            ({"zh": "要带端口", "en": "with the port"}[lang], ""),
            ("BotFather", ""),
            ({"zh": "答案从哪里来", "en": "Where do the answers"}[lang], "2"),
        ):
            terminal.answers(asked, said)
        summary = terminal.waits({"zh": "写入吗", "en": "Write it"}[lang])
        for line in (
            "PHONEDESK_TIMEZONE=Asia/Shanghai",
            "PHONEDESK_MODEL__BASE_URL=http://127.0.0.1:8000/v1",
            "PHONEDESK_MODEL__NAME=phonedesk-demo",
            "PHONEDESK_DEVICE__SERIAL=127.0.0.1:16001",
        ):
            assert line in summary
        terminal.type("")
        assert terminal.ended() == 1  # neither of them is started
        steps = terminal.seen.partition({"zh": "接下来：", "en": "Next:"}[lang])[2].strip().splitlines()
        assert "phonedesk virtual-phone --port 16001" in steps[0]
        assert "phonedesk demo-model --port 8000" in steps[0]
        ways = re.findall("phonedesk (run|serve|console)", " ".join(" ".join(steps[1:]).split()))
        assert ways == ["run", "serve", "console"], "without Telegram"
    finally:
        terminal.close()


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("typed", ["sk-a-key-of-mine", ""], ids=["key", "none"])
def test_a_hosted_model_without_a_key_is_asked_about_once(
    tmp_path: Path, environment: dict[str, str], lang: str, typed: str
) -> None:
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", lang], tmp_path, environment)
    try:
        for asked, said in (
            ("Language", ""),
            ({"zh": "时区", "en": "Time zone"}[lang], "UTC"),
            ({"zh": "哪个模型", "en": "Which model"}[lang], "4"),
            ({"zh": "API 密钥", "en": "API key"}[lang], ""),
            ({"zh": "没有密钥", "en": "Without a key"}[lang], typed),
            (PHONE, ""),
            ("BotFather", ""),
            ({"zh": "答案从哪里来", "en": "Where do the answers"}[lang], "3"),
            ("[https://api.dify.ai]", ""),
            ({"zh": "知识库 ID", "en": "dataset's id"}[lang], "set-1"),
            ({"zh": "API 密钥", "en": "Its API key"}[lang], "dataset-1"),
        ):
            terminal.answers(asked, said)
        summary = terminal.waits({"zh": "写入吗", "en": "Write it"}[lang])
        assert ("PHONEDESK_MODEL__API_KEY=***" in summary) == bool(typed)
        assert "PHONEDESK_KNOWLEDGE__BASE_URL=https://api.dify.ai" in summary
        assert terminal.interrupt() == 130
    finally:
        terminal.close()


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_an_address_of_ones_own_is_needed_and_no_preset_is_offered_for_it(
    tmp_path: Path, environment: dict[str, str], lang: str
) -> None:
    preset = model_presets()[0]
    (tmp_path / ".env").write_text(
        f"PHONEDESK_MODEL__BASE_URL={preset.base_url}\nPHONEDESK_MODEL__NAME={preset.name}\nPHONEDESK_TIMEZONE=UTC\n"
        "PHONEDESK_MODEL__API_KEY=of-the-preset\n"
    )
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", lang], tmp_path, environment)
    try:
        for asked, said in (
            ("Language", ""),
            ({"zh": "时区", "en": "Time zone"}[lang], ""),
            ({"zh": "哪个模型", "en": "Which model"}[lang], str(len(model_presets()) + 1)),
            ({"zh": "接口地址", "en": "Its address"}[lang], ""),
            ({"zh": "还没有填接口地址", "en": "The address is missing"}[lang], "http://192.168.1.5:1/v1"),
            ({"zh": "名字", "en": "name there"}[lang], ""),
            ({"zh": "还没有填模型的名字", "en": "name is missing"}[lang], "mine"),
            ({"zh": "API 密钥", "en": "API key"}[lang], ""),
            (PHONE, ""),
            ("BotFather", ""),
            ({"zh": "答案从哪里来", "en": "Where do the answers"}[lang], ""),
        ):
            terminal.answers(asked, said)
        summary = terminal.waits({"zh": "写入吗", "en": "Write it"}[lang])
        assert "PHONEDESK_MODEL__BASE_URL=http://192.168.1.5:1/v1" in summary
        assert "PHONEDESK_MODEL__NAME=mine" in summary
        assert "PHONEDESK_MODEL__API_KEY=\n" in summary, "another server does not get the key of the preset's"
        assert terminal.interrupt() == 130
    finally:
        terminal.close()


def test_a_key_of_the_toml_file_is_kept_for_its_address(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "phonedesk.toml").write_text(
        'timezone = "UTC"\n[model]\nbase_url = "http://localhost:1/v1"\nname = "mine"\napi_key = "of-the-file"\n'
    )
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", "en"], tmp_path, environment)
    try:
        for asked in ("Language", "Time zone", "Which model", "Its address", "name there"):
            terminal.answers(asked, "")
        for asked in ("Enter keeps the present one", PHONE, "BotFather", "Where do the answers"):
            terminal.answers(asked, "")
        summary = terminal.waits("Write it")
        assert "PHONEDESK_MODEL__BASE_URL=http://localhost:1/v1" in summary
        assert "API_KEY" not in summary
        assert terminal.interrupt() == 130
    finally:
        terminal.close()


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("lang", "where", "typed"),
    [
        ("zh", "environment", "sk-chosen"),
        ("en", "environment", ""),
        ("zh", "phonedesk.toml", ""),
        ("en", "phonedesk.toml", ""),
    ],
)
def test_a_key_goes_to_no_server_for_which_it_was_not_chosen(
    tmp_path: Path, environment: dict[str, str], lang: str, where: str, typed: str
) -> None:
    if where == "environment":
        environment = {**environment, "PHONEDESK_MODEL__API_KEY": "of-another"}
    else:
        (tmp_path / where).write_text('[model]\nbase_url = "http://another:1/v1"\napi_key = "of-another"\n')
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", lang], tmp_path, environment)
        try:
            for asked, said in (
                ("Language", ""),
                ({"zh": "时区", "en": "Time zone"}[lang], "UTC"),
                ({"zh": "哪个模型", "en": "Which model"}[lang], str(len(model_presets()) + 1)),
                ({"zh": "接口地址", "en": "Its address"}[lang], f"http://127.0.0.1:{chosen.getsockname()[1]}/v1"),
                ({"zh": "名字", "en": "name there"}[lang], "mine"),
                ({"zh": "API 密钥", "en": "API key"}[lang], typed),
                (PHONE, ""),
                ("BotFather", ""),
                ({"zh": "答案从哪里来", "en": "Where do the answers"}[lang], ""),
                ({"zh": "写入吗", "en": "Write it"}[lang], ""),
            ):
                terminal.answers(asked, said)
            assert terminal.ended() == 1
        finally:
            terminal.close()
        chosen.setblocking(False)
        with pytest.raises(BlockingIOError):
            chosen.accept()
    if where == "environment":
        begin = {"zh": "环境变量 ", "en": "The environment variable "}[lang]
        assert f"{begin}PHONEDESK_MODEL__API_KEY " in terminal.seen
        assert "unset PHONEDESK_MODEL__API_KEY" in terminal.seen
    else:
        said = {"zh": f"{where}:3 里另设了 ", "en": f"{where}:3 says something else for "}[lang]
        assert f"{said}PHONEDESK_MODEL__API_KEY" in terminal.seen
        assert "unset" not in terminal.seen
    assert {"zh": "现在不检查", "en": "Nothing is checked now"}[lang] in terminal.seen
    assert "of-another" not in terminal.seen


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_knowledge_base_has_an_address_and_an_id_that_can_be_used(
    tmp_path: Path, environment: dict[str, str], lang: str
) -> None:
    refused = {"zh": "要以 http:// 或 https:// 开头", "en": "It must begin with http:// or https://"}[lang]
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", lang], tmp_path, environment)
    try:
        for asked, said in (
            ("Language", ""),
            ({"zh": "时区", "en": "Time zone"}[lang], "UTC"),
            ({"zh": "哪个模型", "en": "Which model"}[lang], LATER),
            (PHONE, ""),
            ("BotFather", ""),
            ({"zh": "答案从哪里来", "en": "Where do the answers"}[lang], "6"),
            ({"zh": "服务地址", "en": "address"}[lang], "maxkb.local:8080"),
            (refused, "http://maxkb.local:8080"),
            ({"zh": "知识库 ID", "en": "dataset's id"}[lang], "https://cloud.fastgpt.cn/api"),
            ({"zh": "不是知识库 ID", "en": "not the id of a dataset"}[lang], "app-1"),
            ({"zh": "API 密钥", "en": "API key"}[lang], ""),
        ):
            terminal.answers(asked, said)
        summary = terminal.waits({"zh": "写入吗", "en": "Write it"}[lang])
        assert "PHONEDESK_KNOWLEDGE__BASE_URL=http://maxkb.local:8080/" in summary
        assert "PHONEDESK_KNOWLEDGE__DATASET_ID=app-1" in summary
        assert terminal.interrupt() == 130
    finally:
        terminal.close()


@pytest.mark.parametrize("leave", ["ctrl-c", "no"])
def test_who_leaves_changes_nothing(terminal: Terminal, tmp_path: Path, leave: str) -> None:
    if leave == "ctrl-c":
        terminal.waits("Language")
        terminal.interrupt()
    else:
        for asked, typed in (
            ("Language", ""),
            ("Time zone", "UTC"),
            ("Which model", LATER),
            (PHONE, ""),
            ("BotFather", ""),
        ):
            terminal.answers(asked, typed)
        terminal.answers("Where do the answers", "9")
        terminal.answers("Type a number from 1 to 6", "")
        terminal.answers("Write it", "2")
    assert terminal.ended() == 130
    assert "Nothing was changed." in terminal.seen
    assert "Traceback" not in terminal.seen
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize("value", ["a b", "it's", 'say "x"', "#1", "a=b", "中文", "back\\slash", "$HOME", ""])
def test_a_value_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PHONEDESK_MODEL__NAME", raising=False)
    write_env({"PHONEDESK_MODEL__NAME": value}, tmp_path)
    assert load().model.name == (value or "autoglm-phone-9b")


@pytest.mark.parametrize(("lang", "said"), [("zh", "# phonedesk 的设置"), ("en", "# Settings of phonedesk")])
def test_a_new_file_begins_with_its_comment_in_the_language_chosen(tmp_path: Path, lang: str, said: str) -> None:
    write_env({"PHONEDESK_LANG": lang}, tmp_path)
    assert (tmp_path / ".env").read_text(encoding="utf-8").startswith(said)


def test_each_preset_is_usable() -> None:
    for preset in model_presets():
        assert preset.base_url.startswith("http")
        profile = model_profile(preset.profile) if preset.profile else profile_of_model(preset.name, BY_NAME)
        assert profile.name != "general" or "glm-4.5v" in preset.name, preset.key
        assert (preset.cost_of_reply is None) == (preset.tokens_in is None)
        if preset.cost_of_reply is not None:
            assert 0.0001 < preset.cost_of_reply < 0.1
            assert preset.priced_at
        for lang in ("zh", "en"):
            assert SetupTexts(lang).get(f"model.{preset.key}")


@pytest.mark.parametrize(
    ("kind", "typed", "address"),
    [
        ("fastgpt", "", "https://cloud.fastgpt.cn/api/core/dataset/searchTest"),
        ("maxkb", "https://kb.example/", "https://kb.example/chat/api/v3/knowledge/{dataset_id}/retrieve"),
    ],
)
def test_a_knowledge_base_with_a_known_template_is_offered(
    tmp_path: Path, environment: dict[str, str], kind: str, typed: str, address: str
) -> None:
    keys = [preset.key for preset in knowledge_presets()]
    terminal = Terminal([sys.executable, "-m", "bot", "init", "--lang", "en"], tmp_path, environment)
    try:
        for asked, said in (
            ("Language", ""),
            ("Time zone", "UTC"),
            ("Which model", LATER),
            (PHONE, ""),
            ("BotFather", ""),
            ("Where do the answers", str(5 + keys.index(kind))),
            ("The service's address", typed),
            ("The dataset's id", "a1"),
            ("Its API key", "sk-of-the-base"),
        ):
            terminal.answers(asked, said)
        assert f"PHONEDESK_KNOWLEDGE__BASE_URL={address}" in terminal.waits("Write it")
        assert terminal.interrupt() == 130
    finally:
        terminal.close()


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("preset", knowledge_presets(), ids=lambda preset: preset.key)
def test_a_template_is_read_from_the_file_as_the_how_to_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preset: KnowledgePreset, lang: str
) -> None:
    without_settings(monkeypatch, tmp_path)
    ending = ".zh-CN" if lang == "zh" else ""
    page = Path(__file__).parents[4] / f"docs/how-to/use-any-http-knowledge-base{ending}.md"
    recipes = map(tomllib.loads, re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    recipe = next(one for one in recipes if one["knowledge"].get("base_url", "").endswith(preset.path))
    write_env(
        {
            "PHONEDESK_KNOWLEDGE__PROVIDER": "http",
            "PHONEDESK_KNOWLEDGE__DATASET_ID": "a",
            **preset.settings(),
            "PHONEDESK_KNOWLEDGE__BASE_URL": recipe["knowledge"]["base_url"],
        },
        tmp_path,
    )
    assert load().knowledge.http == TemplateSettings(**recipe["knowledge"]["http"])


def test_both_languages_say_the_same() -> None:
    def holes(lang: Lang) -> dict[str, set[str | None]]:
        texts = load_texts("bot.app.setup.texts", lang)
        return {key: {hole for _, hole, _, _ in string.Formatter().parse(text)} for key, text in texts.items()}

    assert holes("zh") == holes("en")
    assert resources.files("bot.app.setup").joinpath("presets.toml").is_file()
