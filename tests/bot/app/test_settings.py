from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.errors import ConfigInvalid
from agent_core.model.usage import Price
from agent_core.texts import LANGUAGES, load_texts
from bot.app.models import build_model, prices_of
from bot.app.settings import texts
from bot.app.settings.files import CONFIG_FILE
from bot.app.settings.layers import Settings, aliases
from bot.app.settings.loading import PassedOver, load, passed_over, unknown_names
from bot.app.settings.names import names
from bot.app.settings.origin import survey
from bot.app.settings.texts import GENERAL, setting_words
from bot.channels.cli.commands.eval import KEY_NAME
from tests.support.environment import without_settings

TOKEN = "123456789:" + "A" * 35


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without files, and an environment without our names."""
    without_settings(monkeypatch, tmp_path)
    return tmp_path


def refused(**overrides: object) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        load(**overrides)
    return str(caught.value)


def test_each_setting_and_each_group_has_its_words_in_both_languages() -> None:
    settings = {f"{'.'.join(name.path[:-1]) or GENERAL}.{name.path[-1]}" for name in names()}
    groups = {f"group.{'.'.join(name.path[:-1]) or GENERAL}" for name in names()}
    for lang in LANGUAGES:
        said = load_texts(texts.__name__, lang)
        assert said.keys() == settings | groups
        assert all(text.strip() for text in said.values())
        of_settings = [said[key] for key in settings]
        assert len(set(of_settings)) == len(of_settings), "two settings have the same words"


@pytest.mark.parametrize(
    ("ending", "units"),
    [
        ("_seconds", ("秒", "seconds")),
        ("_minutes", ("分钟", "minutes")),
        ("_days", ("天", "days")),
        ("_mb", ("MB", "MB")),
    ],
)
def test_the_words_of_a_setting_name_its_unit(ending: str, units: tuple[str, str]) -> None:
    found = [name for name in names() if name.key.endswith(ending)]
    assert found
    for lang, unit in zip(LANGUAGES, units, strict=True):
        assert [name.key for name in found if unit not in setting_words(name, lang)] == []


def test_each_layer_goes_over_the_one_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().model.name == "autoglm-phone-9b"
    (tmp_path / CONFIG_FILE).write_text('[model]\nname = "of-file"\nmax_tokens = 7\n')
    assert load().model.name == "of-file"
    (tmp_path / ".env").write_text("PHONEDESK_MODEL__NAME=of-dotenv\nHOME_OF_OTHERS=1\n")
    assert load().model.name == "of-dotenv"
    monkeypatch.setenv("PHONEDESK_MODEL__NAME", "of-environment")
    assert load().model.name == "of-environment"
    settings = load(model={"name": "of-command-line"})
    assert settings.model.name == "of-command-line"
    assert settings.model.max_tokens == 7  # the layers are joined name by name, not table by table


def test_what_the_command_line_leaves_open_and_what_is_empty_count_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    assert load(lang=None).lang == "en"
    monkeypatch.setenv("PHONEDESK_LANG", "")
    assert load().lang == "zh"
    Path(".env").write_text("PHONEDESK_LANG=en\n")
    assert load().lang == "en"
    Path(".env").write_text("PHONEDESK_LANG=\n")
    Path(CONFIG_FILE).write_text('lang = "en"\n')
    assert load().lang == "en"


def test_the_file_may_stand_elsewhere_but_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    monkeypatch.setenv("PHONEDESK_CONFIG", str(elsewhere))
    said = refused()
    assert "PHONEDESK_CONFIG" in said
    assert str(elsewhere) in said
    elsewhere.write_text('lang = "en"\n')
    (tmp_path / CONFIG_FILE).write_text('lang = "zh"\nlog_level = "debug"\n')
    assert (load().lang, load().log_level) == ("en", "info")
    monkeypatch.setenv("PHONEDESK_CONFIG", str(tmp_path))  # a folder
    assert str(tmp_path) in refused()
    monkeypatch.setenv("PHONEDESK_CONFIG", "")
    assert load().log_level == "debug"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[model]\nnam = "x"\n', "model.nam"),
        ("[telegram]\ntokn = 1\n", "telegram.tokn"),
        ('[modell]\nname = "x"\n', "modell"),
        ("lang = 'fr'\n", "lang (in "),
        ("[web]\nport = 70000\n", "web.port (in "),
        ("timezone = 'Asia/Nowhere'\n", "Asia/Nowhere"),
        ("[telegram]\nmode = 'webhook'\nwebhook_url = 'http://x'\n", "webhook_url"),
        ("[model\n", CONFIG_FILE),
    ],
)
def test_a_wrong_file_is_refused_with_the_name(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / CONFIG_FILE).write_text(text)
    assert named in refused()


def test_every_wrong_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_WEB__PORT", "many")
    monkeypatch.setenv("PHONEDESK_MODEL__NAM", "x")
    said = refused(lang="fr")
    for name in ("PHONEDESK_WEB__PORT", "PHONEDESK_MODEL__NAM", "PHONEDESK_LANG"):
        assert name in said


def test_a_wrong_name_is_given_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_text('[model]\nnaem = "x"\n')
    said = refused()
    assert "model.naem (in phonedesk.toml): there is no such setting" in said
    assert "PHONEDESK_MODEL__NAEM" not in said
    assert "in the environment, in .env or in phonedesk.toml" in said
    (tmp_path / CONFIG_FILE).unlink()
    (tmp_path / ".env").write_text("PHONEDESK_MODEL__NAEM=x\n")
    said = refused()
    assert "PHONEDESK_MODEL__NAEM: there is no such setting" in said
    assert "model.naem" not in said


def test_names_that_set_nothing_are_found_with_what_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unknown_names() == {}
    for name in (
        "PHONEDESK_MODL__NAME",
        "PHONEDESK_MODEL_BASE_URL",
        "phonedesk_lang",
        "PHONEDESK_CONFIG",
        "PHONEDES",
        KEY_NAME,
    ):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PHONEDESK_LANG__X", "")
    monkeypatch.setenv("PHONEDESK_QQQQ", "")
    (tmp_path / ".env").write_text("PHONEDESK_TIMEZON=Asia/Shanghai\nPHONEDESK_WEB__PORT=1\nPHONEDESK_MODEL='{}'\n")
    assert unknown_names() == {
        "PHONEDESK_LANG__X": "PHONEDESK_LANG",
        "PHONEDESK_MODEL_BASE_URL": "PHONEDESK_MODEL__BASE_URL",
        "PHONEDESK_MODL__NAME": "PHONEDESK_MODEL__NAME",
        "PHONEDESK_QQQQ": "",
        "PHONEDESK_TIMEZON": "PHONEDESK_TIMEZONE",
    }


def test_a_file_that_is_not_utf8_or_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_bytes(b'lang = "\xff"\n')
    assert CONFIG_FILE in refused()


@pytest.mark.parametrize("written", ["192.168.1.5:5555, b:2", '["192.168.1.5:5555", "b:2"]'])
def test_addresses_are_a_list_in_plain_words_or_json(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_DEVICE__CONNECT", written)
    assert load().device.connect == ("192.168.1.5:5555", "b:2")


def test_addresses_in_the_file(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_text('[device]\nconnect = ["a:1", "b:2"]\n')
    assert load().device.connect == ("a:1", "b:2")


def test_secrets_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    password = "open-sesame-17"
    settings = load(
        telegram={"token": TOKEN, "webhook_secret": "hook-secret-1"},
        model={"api_key": "key-secret-1", "extra_body": {"auth": [{"secret": "free-secret-1"}]}},
        knowledge={"token": "kb-secret-1"},
        database_url=f"postgresql://desk:{password}@db/desk",
        queue={"database_url": f"postgresql://desk:{password}@db/queue"},
    )
    every = {TOKEN, "hook-secret-1", "key-secret-1", "kb-secret-1", "free-secret-1", password}
    assert set(settings.secrets()) == every
    for text in (repr(settings), str(settings), f"{settings.telegram}", repr(settings.queue)):
        assert not [secret for secret in every if secret in text]
    for name, value in {
        "PHONEDESK_MODEL": "key-secret-1",
        "PHONEDESK_TELEGRAM__TOKEN__X": TOKEN,
        "PHONEDESK_DATABASE_URL": f"mysql://desk:{password}@db/desk",
        "PHONEDESK_MODEL__EXTRA_BODY": "{key-secret-1",
    }.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            said = refused()
            assert value not in said
            assert password not in said


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", "nonsense", "postgresql://h:port/d"])
def test_a_database_that_cannot_be_used_is_refused(url: str) -> None:
    assert "PHONEDESK_DATABASE_URL" in refused(database_url=url)
    assert "PHONEDESK_QUEUE__DATABASE_URL" in refused(queue={"database_url": url})


def test_both_databases_stand_in_the_data_folder_unless_told(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path)
    assert settings.url == f"sqlite:///{tmp_path}/phonedesk.sqlite3"
    assert settings.queue_url == f"sqlite:///{tmp_path}/queue.sqlite3"
    told = load(database_url="sqlite:////a/b.db", queue={"database_url": "postgresql://h/q"})
    assert (told.url, told.queue_url) == ("sqlite:////a/b.db", "postgresql://h/q")


def test_settings_do_not_change() -> None:
    settings = load()
    with pytest.raises(ValueError, match="frozen"):
        settings.lang = "en"  # type: ignore[misc]  # that is what is tried
    with pytest.raises(ValueError, match="frozen"):
        settings.model.name = "x"  # type: ignore[misc]  # that is what is tried


def test_the_aliases_of_the_knowledge_base(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "BASE_URL": "https://kb.example",
        "DATASET_ID": "d1",
        "TIMEOUT_SECONDS": "2.5",
        "TOKEN": "second",
        "AUTH_TOKEN": "first",
    }.items():
        monkeypatch.setenv(f"PHONE_AGENT_KNOWLEDGE_{name}", value)
    knowledge = load().knowledge
    assert (knowledge.provider, knowledge.base_url, knowledge.dataset_id) == ("dify", "https://kb.example", "d1")
    assert (knowledge.timeout_seconds, knowledge.token.get_secret_value()) == (2.5, "first")
    monkeypatch.delenv("PHONE_AGENT_KNOWLEDGE_AUTH_TOKEN")
    assert load().knowledge.token.get_secret_value() == "second"


def test_our_own_name_goes_before_the_alias_and_the_alias_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / CONFIG_FILE).write_text('[knowledge]\ndataset_id = "file"\ntimeout_seconds = 3\n')
    monkeypatch.setenv("PHONE_AGENT_KNOWLEDGE_DATASET_ID", "alias")
    assert (load().knowledge.dataset_id, load().knowledge.timeout_seconds) == ("alias", 3)
    monkeypatch.setenv("PHONEDESK_KNOWLEDGE__DATASET_ID", "own")
    assert load().knowledge.dataset_id == "own"


@pytest.mark.parametrize("bad", ["soon", "nan", "inf", "-1", "0", " "])
def test_a_time_out_that_is_no_number_is_told_of_and_the_default_kept(
    bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert passed_over() == []
    monkeypatch.setenv("PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS", bad)
    assert load().knowledge.timeout_seconds == 10.0
    assert [(one.name, one.kind) for one in passed_over()] == [("PHONE_AGENT_KNOWLEDGE_TIMEOUT_SECONDS", "seconds")]


def test_lines_of_the_env_file_that_cannot_be_read_are_told_of_without_what_they_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ("no name", "MODEL__NAME=x", "SOMEBODYS__ELSE=y", "", "看不懂", "", "=3", "export B", 'PHONEDESK_LANG="en')
    (tmp_path / ".env").write_text("\n".join(lines) + "\n")
    assert load().lang == "zh"
    told = [PassedOver("MODEL__NAME", "unknown", "PHONEDESK_MODEL__NAME")]
    assert passed_over() == [*told, *(PassedOver(f".env:{line}", "line") for line in (1, 5, 7, 8, 9))]
    assert caplog.text == ""  # not by the library, each time


def test_the_aliases_may_stand_in_dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PHONE_AGENT_KNOWLEDGE_DATASET_ID=written\nPHONE_AGENT_KNOWLEDGE_TOKEN=t\n")
    assert (load().knowledge.dataset_id, load().knowledge.token.get_secret_value()) == ("written", "t")
    monkeypatch.setenv("PHONE_AGENT_KNOWLEDGE_DATASET_ID", "set")
    assert load().knowledge.dataset_id == "set"


def test_no_alias_changes_nothing() -> None:
    assert aliases({}) == {}
    assert aliases({"PHONE_AGENT_KNOWLEDGE_TOKEN": ""}) == {}
    assert Settings().knowledge.provider == "embedded"


def test_fallbacks_and_prices_as_tables_or_as_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "phonedesk.toml").write_text(
        '[[model.fallbacks]]\nbase_url = "http://a/v1"\nname = "gpt-5"\napi_key = "first-secret"\n'
        '[[model.fallbacks]]\nbase_url = "http://b/v1"\nname = "deepseek-chat"\n'
        '[price]\ntokens_in = 1\n[price.models."glm-4.5v"]\ntokens_in = 2\ntokens_out = 6\ntokens_cached = 0.4\n',
        encoding="utf-8",
    )
    settings = load()
    first, second = settings.model.fallbacks
    assert (first.name, first.max_tokens, second.name, second.api_key.get_secret_value()) == (
        "gpt-5", 3000, "deepseek-chat", "EMPTY"
    )  # fmt: skip
    assert "first-secret" in settings.secrets()
    assert "first-secret" not in repr(settings)
    prices = prices_of(settings.price)
    assert (prices.models["glm-4.5v"], prices.default) == (Price(2, 6, 0.4), Price(1, 0))
    assert not prices_of(Settings().price.model_copy(update={"tokens_in": None, "models": {}}))
    fallbacks = [mind.profile.name for mind in build_model(settings)._minds]  # type: ignore[attr-defined]  # of several
    assert fallbacks == ["autoglm-phone", "general", "text-only"]
    monkeypatch.setenv("PHONEDESK_MODEL__FALLBACKS", '[{"base_url": "http://c/v1", "name": "step-gui-8b"}]')
    monkeypatch.setenv("PHONEDESK_PRICE__MODELS", '{"m": {"tokens_in": 1, "tokens_out": 2}}')
    assert [one.name for one in load().model.fallbacks] == ["step-gui-8b"]
    assert load().price.models["m"].tokens_out == 2


def test_times_of_digests_and_quiet_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load().digest.daily, load().digest.weekly, load().quiet.hours) == ("09:00", "mon 09:00", "")
    monkeypatch.setenv("PHONEDESK_DIGEST__WEEKLY", "Off")
    monkeypatch.setenv("PHONEDESK_DIGEST__DAILY", " 21:30 ")
    monkeypatch.setenv("PHONEDESK_QUIET__HOURS", "22:00-08:00")
    assert (load().digest.daily, load().digest.weekly, load().quiet.hours) == ("21:30", "", "22:00-08:00")


@pytest.mark.parametrize(
    ("section", "value", "named"),
    [
        ("digest", {"daily": "9 o'clock"}, "Write it as 09:00"),
        ("digest", {"weekly": "09:00"}, "Write it as mon 09:00"),
        ("quiet", {"hours": "22-8"}, "Write them as 22:00-07:00"),
        ("alerts", {"poll_minutes": 0}, "greater than or equal to 1"),
        ("alerts", {"chat": "@shop"}, "PHONEDESK_ALERTS__CHAT"),
        ("price", {"tokens_in": -1}, "PHONEDESK_PRICE__TOKENS_IN"),
        ("price", {"models": {"m": {"tokens_in": 1}}}, "PHONEDESK_PRICE__MODELS__M__TOKENS_OUT"),
        ("limits", {"day_cost": -1}, "PHONEDESK_LIMITS__DAY_COST"),
        ("run", {"max_cost": -1}, "PHONEDESK_RUN__MAX_COST"),
        ("model", {"fallbacks": [{"name": "m"}]}, "PHONEDESK_MODEL__FALLBACKS__0__BASE_URL"),
        ("model", {"fallbacks": [{"base_url": "x", "name": "m"}]}, "it must begin with http"),
        ("model", {"fallbacks": [{"base_url": "http://x", "name": "m", "profile": "none"}]}, "no model profile 'none'"),
        ("model", {"name": " "}, "it must not be empty"),
    ],
)
def test_wrong_ones_say_how_they_are_written(section: str, value: dict[str, object], named: str) -> None:
    assert named in refused(**{section: value})


def test_a_proxy_and_a_token_are_checked_and_their_secrets_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://me:of-the-environment@10.0.0.1:1")
    settings = load(model={"proxy": " socks5://me:of%40the-settings@127.0.0.1:7890 "}, telegram={"token": " 1:a-b_C\n"})
    assert settings.model_proxy.name == "PHONEDESK_MODEL__PROXY"
    assert {"of-the-environment", "of%40the-settings", "of@the-settings"} <= set(settings.secrets())
    assert "the-settings" not in repr(settings)
    shown = next(one for one in survey(settings) if one.name.key == "model.proxy")
    assert shown.value == "socks5://<login>@127.0.0.1:7890"
    assert settings.telegram.token.get_secret_value() == "1:a-b_C"
    for wrong in ({"model": {"proxy": "geheim@"}}, {"telegram": {"token": "geheim"}}):
        with pytest.raises(ConfigInvalid) as raised:
            load(**wrong)
        assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("{}", {}),
        (
            '{"S1": ["shop", "#spare", "shop"], "S2": "店里，备用 back"}',
            {"S1": ("shop", "spare"), "S2": ("店里", "备用", "back")},
        ),
    ],
)
def test_tags_are_lists_or_words(
    monkeypatch: pytest.MonkeyPatch, written: str, tags: dict[str, tuple[str, ...]]
) -> None:
    monkeypatch.setenv("PHONEDESK_DEVICE__TAGS", written)
    assert load().device.tags == tags


@pytest.mark.parametrize(
    "written", ['{"S1": ["two words"]}', '{"S1": ["#"]}', f'{{"S1": "{"x" * 25}"}}', '{"S1": 5}', "shop"]
)
def test_what_is_no_tag_is_refused(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("PHONEDESK_DEVICE__TAGS", written)
    with pytest.raises(ConfigInvalid):
        load()
