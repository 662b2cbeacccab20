"""Which Host and Origin headers are ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.app.server_names import LOOPBACK, mcp_names, web_address, web_names
from bot.app.settings.loading import SettingsWrong, load
from bot.app.settings.sections import McpSettings, TelegramSettings, WebSettings

WEB = WebSettings(host="192.168.1.9", hosts=("Desk.Example.com", "phonedesk", "10.42.0.0/16", "fd00::5"))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:8737", "127.9.9.9", "[::1]", "[::1]:8737"),
        *("192.168.1.9:8737", "desk.example.com", "desk.EXAMPLE.com.:443", "phonedesk:8737", "10.42.7.1:80"),
        *("[fd00::5]:8737", "[FD00:0::5]"),
    ],
)
def test_our_own_names(host: str) -> None:
    names = web_names(WEB)
    assert names.answers_to(host)
    assert names.trusts_page_of(f"http://{host}")
    assert names.trusts_page_of(f"https://{host}")


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "localhost.evil.example", "evil.localhost", "desk.example.com.evil.example", "desk"),
        *("0.0.0.0", "192.168.1.10", "10.43.0.1", "127.0.0.1.evil.example", "127.0.0.1:80:80", "localhost:evil"),
        *("localhost:", ":80", "localhost@evil.example", "evil.example@localhost", "localhost/", "localhost#"),
        *("[::1", "::1", "[::2]", "[::]", "localhost ", "localhost\t", "localhost, evil.example", "lоcalhost"),
        *("127.1", "2130706433", "0x7f.1", "[fe80::1%1]"),
    ],
)  # fmt: skip
def test_names_of_others(host: str) -> None:
    for names in (web_names(WEB), mcp_names(McpSettings(host="0.0.0.0")), mcp_names(McpSettings(host="::")), LOOPBACK):
        assert not names.answers_to(host)
        assert not names.trusts_page_of(f"http://{host}")


@pytest.mark.parametrize(
    "origin", ["null", "", "localhost", "file://", "ftp://localhost", "http://localhost/a", "http://"]
)
def test_pages_of_nobody(origin: str) -> None:
    assert not LOOPBACK.trusts_page_of(origin)


@given(st.text(max_size=30), st.text(max_size=30))
def test_nothing_around_a_name_makes_it_ours(before: str, after: str) -> None:
    host = f"{before}evil.example{after}"
    assert not web_names(WEB).answers_to(host)


def test_the_webhooks_public_name_is_ours_without_a_setting() -> None:
    telegram = TelegramSettings(mode="webhook", webhook_url="https://Desk.example.org/telegram/webhook")
    assert web_names(WebSettings(), telegram).answers_to("desk.example.org")
    assert not web_names(WebSettings(), telegram.model_copy(update={"mode": "polling"})).answers_to("desk.example.org")


def test_a_refusal_names_the_setting_and_floods_no_log() -> None:
    names = web_names(WebSettings())
    with capture_logs() as logs:
        for number in range(100):
            said = names.refusal(f"evil{number}.example")
            assert "PHONEDESK_WEB__HOSTS" in said["message"]
            assert "evil" not in said["message"]
    assert [line["event"] for line in logs] == ["unknown_host_refused"] * 20
    assert "PHONEDESK_MCP__HOSTS" in mcp_names(McpSettings()).refusal("x")["message"]


@pytest.mark.parametrize("host", ["http://desk", "desk:8737", "a b", "", "*", "10.0.0.256", "desk/1", "客服.example"])
def test_what_is_no_host_is_refused_as_a_setting(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for section in ("web", "mcp"):
        with pytest.raises(SettingsWrong, match="is no host; write a name, an address or a network"):
            load(**{section: {"hosts": ["phonedesk", host]}})
    monkeypatch.setenv("PHONEDESK_WEB__HOSTS", "phonedesk, 10.0.0.0/8")
    assert load().web.hosts == ("phonedesk", "10.0.0.0/8")


def test_people_open_the_server_by_the_name_that_a_browser_can_reach() -> None:
    assert web_address(WebSettings(), port=8000) == "http://127.0.0.1:8000"
    assert web_address(WebSettings(host="0.0.0.0", port=80)) == "http://127.0.0.1:80"
    assert web_address(WebSettings(host="::1", port=80)) == "http://[::1]:80"
    behind = WebSettings(host="0.0.0.0", hosts=("10.0.0.0/8", "desk.example.com"))
    assert web_address(behind, port=80) == "http://desk.example.com:80"
    telegram = TelegramSettings(mode="webhook", webhook_url="https://desk.example.com/telegram/webhook")
    assert web_address(WebSettings(), telegram) == "https://desk.example.com"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://Desk.Example.com/", "https://desk.example.com"),
        ("https://desk.example.com:443", "https://desk.example.com"),
        ("http://10.0.0.5:8737", "http://10.0.0.5:8737"),
        (" https://[fd00::5]:8443 ", "https://[fd00::5]:8443"),
        ("", ""),
    ],
)
def test_the_public_url_is_written_in_one_form(written: str, read: str) -> None:
    assert WebSettings(public_url=written).public_url == read


@pytest.mark.parametrize(
    "written",
    [
        *(
            "desk.example.com",
            "ftp://desk.example.com",
            "https://",
            "https://desk.example.com/shop",
            "https://desk?x=1",
        ),
        *("https://desk.example.com/#a", "https://me:secret@desk.example.com", "https://desk.example.com:0"),
        *(
            "https://desk.example.com:99999",
            "https://客服.example",
            "https://de sk",
            "https://[fd00::5",
            "https://1.2.3",
        ),
    ],
)
def test_what_is_no_public_url_is_refused_as_a_setting(written: str) -> None:
    with pytest.raises(SettingsWrong, match=r"it has the form https://desk.example.com") as wrong:
        load(web={"public_url": written})
    assert "secret" not in str(wrong.value)


def test_the_public_url_is_where_people_open_the_server_and_its_host_is_ours() -> None:
    settings = WebSettings(public_url="https://desk.example.com", hosts=("other.example",))
    telegram = TelegramSettings(mode="webhook", webhook_url="https://hook.example.org")
    assert web_address(settings, telegram, port=80) == "https://desk.example.com"
    names = web_names(settings, telegram)
    for host in ("desk.example.com", "hook.example.org", "other.example", "127.0.0.1:8737"):
        assert names.answers_to(host)
    assert names.trusts_page_of("https://desk.example.com")
    for origin in ("http://desk.example.com", "https://desk.example.com:8443", "https://evil.example"):
        assert not names.trusts_page_of(origin)
    assert names.trusts_page_of("http://127.0.0.1:8737")
    secret = {"": True, "https://desk.example.com": True, "http://127.0.0.1:8737": False}
    assert {origin: names.is_secret(origin) for origin in secret} == secret
    assert not LOOPBACK.is_secret("")
