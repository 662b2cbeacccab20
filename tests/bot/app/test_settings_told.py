"""Wrong settings are told in one language, with the place where they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_core.errors import ConfigError
from agent_core.texts import Lang
from bot.app.config_check import incomplete
from bot.app.doctor.examine import CHECKS, examine
from bot.app.settings.loading import SettingProblem, load, try_settings
from bot.app.settings.origin import survey_of_wrong
from bot.channels.cli.commands.wrong import reason
from bot.channels.cli.terminal.language import texts

ENGLISH = re.compile(r"\b[A-Za-z][a-z]+,? [a-z]{2,}\b")  # two words of a sentence
COMMAND = re.compile(r"phonedesk( [a-z]+)+")
CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")

WRONG = [
    # the setting, its value in the environment, what is said of it in Chinese
    ("model.base_url", "localhost:8000/v1", "http:// 或 https://"),
    ("model.base_url", "http:///v1", "写明主机"),
    ("knowledge.base_url", "fastgpt.cn", "http:// 或 https://"),
    ("knowledge.dify.base_url", "maxkb.local:8080", "http:// 或 https://"),
    ("knowledge.dataset_id", "https://cloud.fastgpt.cn/api", "不是知识库 ID"),
    ("knowledge.provider", "fastgpt", "没有知识库类型“fastgpt”。可选：embedded、dify、ragflow、http；"),
    ("knowledge.provider", "fastgpt", "phonedesk init"),
    ("knowledge.provider", "dify,dify", "两次"),
    ("knowledge.provider", ",", "没有写"),
    ("knowledge.provider", "dify", "PHONEDESK_KNOWLEDGE__DATASET_ID"),
    ("knowledge.http.text", "a..b", "不是路径"),
    ("knowledge.http.headers", '{"a b": "c"}', "请求头"),
    ("knowledge.http.headers", '{"a": "\u4e2d"}', "请求头"),
    ("knowledge.http.body", '{"q": "{quest}"}', "{dataset_id}、{query}"),
    ("digest.daily", "25", "09:00"),
    ("quiet.hours", "late", "22:00"),
    ("device.names", '{"a"', "第 1 行第 5 列"),
    ("device.pins", "S1=12a4", "4 到 16 位数字"),
    ("device.pins", "S1=123", "4 到 16 位数字"),
    ("model.fallbacks", "[", "第 1 行"),
    ("device.connect", "[", "第 1 行"),
    ("telegram.proxy", "not a proxy", "socks5://"),
    ("web.port", "many", "整数"),
]
TOML = [
    ("lang = zh\n", "第 1 行第 8 列"),
    ("[model\n", "第 1 行"),
    ("[model]\nname = 'a'\n[model]\n", "前面已经写过"),
    ("[model]\nname = 'a'\nname = 'b'\n", "前面已经写过"),
    ("lang =", "没有写完"),
    ('lang = """zh', "没有写完"),
]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_in(lang: Lang, said: str) -> bool:
    """Whether nothing but names and commands is in the other language."""
    return (ENGLISH if lang == "zh" else CHINESE).search(COMMAND.sub("", said)) is None


def problems() -> list[SettingProblem]:
    settings, found = try_settings()
    return found if settings is None else incomplete(settings)


async def doctor(lang: Lang) -> tuple[str, str]:
    """What the doctor says of the settings, and what is to be done."""
    with pytest.raises(ConfigError) as refused:
        load()
    checks = [check for check in CHECKS if check.key == "settings"]
    (result,) = [one async for one in examine(refused.value, lang=lang, checks=checks)]
    return result.seen, result.advice


@pytest.mark.parametrize(("key", "value", "said"), WRONG)
def test_a_wrong_value_is_told_in_each_language(
    key: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEDESK_" + key.upper().replace(".", "__"), value)
    (problem,) = problems()
    assert ".".join(problem.path) == key
    told = reason(texts("zh"), problem)
    assert said in told
    assert is_in("zh", told)
    assert is_in("en", reason(texts("en"), problem).replace("\u4e2d", ""))


@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_the_doctor_names_the_place_of_a_wrong_value(lang: Lang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_MODEL__BASE_URL", "localhost:8000/v1")
    seen, advice = await doctor(lang)
    assert "PHONEDESK_MODEL__BASE_URL" in seen
    assert "phonedesk.toml" not in seen + advice
    assert is_in(lang, seen + advice)
    with pytest.raises(ConfigError) as refused:
        load()
    assert "PHONEDESK_MODEL__BASE_URL: it must begin with" in refused.value.message


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(("text", "said"), TOML)
async def test_a_file_that_is_no_toml_is_told_in_each_language(text: str, said: str, lang: Lang) -> None:
    Path("phonedesk.toml").write_text(text)
    (problem,) = problems()
    for told in (reason(texts(lang), problem), (await doctor(lang))[0]):
        assert "phonedesk.toml" in told
        assert is_in(lang, told)
        assert said in told or lang == "en"


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(("text", "said"), TOML)
def test_a_file_of_the_owner_that_is_no_toml_is_told_in_each_language(text: str, said: str, lang: Lang) -> None:
    file = Path("phonedesk.d/apps/mine.toml")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (problem,) = problems()
    told = reason(texts(lang), problem)
    assert is_in(lang, told)
    assert said in told or lang == "en"


@pytest.mark.parametrize("broken", [None, "[model\n", "[web]\nport = 0.5\n", "nothing = 1\n"])
def test_files_of_the_owner_are_told_of_whatever_else_is_wrong(
    broken: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("phonedesk.d/apps").mkdir(parents=True)
    Path("phonedesk.d/apps/mine.toml").write_text("[")
    if broken is None:
        monkeypatch.setenv("PHONEDESK_WEB__PORT", "many")
    else:
        Path("phonedesk.toml").write_text(broken)
    _, _, found = survey_of_wrong(problems())
    assert len(found) == 2
    assert [problem.kind for problem in found if problem.place] == ["own_toml"]


def test_files_of_the_owner_are_told_of_once() -> None:
    Path("phonedesk.d/apps").mkdir(parents=True)
    Path("phonedesk.d/apps/mine.toml").write_text("[")
    _, _, found = survey_of_wrong(problems())
    assert [problem.kind for problem in found] == ["own_toml"]
