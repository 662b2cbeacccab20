"""The doctor on webhooks, outgoing and incoming: it looks, and sends nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from aiohttp import web

from bot.app.database import open_database
from bot.app.doctor.examine import CHECKS, CheckResult, CheckStatus, examine
from bot.app.settings.loading import load
from bot.channels.chat.texts import LANGUAGES, Lang
from bot.channels.web.app import serving
from bot.desk.webhook_messages import new_secret
from storage.engine import Database
from storage.incoming_webhooks import IncomingWebhooks
from storage.tables import incoming_webhooks, webhook_deliveries, webhooks
from storage.webhooks import Message, Webhooks
from tests.support.environment import without_settings


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)


@pytest.fixture
async def db(own_place: None) -> AsyncIterator[Database]:
    opened = await open_database(load())
    yield opened
    await opened.close()


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[str, list[str]]]:
    """A receiver on this machine, and the paths that it was asked for."""
    asked: list[str] = []

    async def take(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    async with serving(app, "127.0.0.1", 0) as url:
        yield f"{url}/secret-path", asked


async def look(lang: Lang = "en", **webhook_settings: object) -> dict[str, CheckResult]:
    checks = [check for check in CHECKS if check.key in {"settings", "database", "webhooks", "incoming"}]
    settings = load(webhooks=webhook_settings)
    return {result.check: result async for result in examine(settings, lang=lang, checks=checks)}


async def test_without_any_there_is_nothing_to_check(db: Database) -> None:
    found = await look()
    assert [found[key].status for key in ("webhooks", "incoming")] == [CheckStatus.SKIPPED] * 2


async def test_before_the_first_start_there_is_nothing_to_check() -> None:
    found = await look()
    assert [found[key].status for key in ("webhooks", "incoming")] == [CheckStatus.SKIPPED] * 2


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_a_webhook_is_looked_at_and_sent_nothing(
    db: Database, receiver: tuple[str, list[str]], lang: Lang
) -> None:
    url, asked = receiver
    hook = await Webhooks(db).add(url, ["outcome"], new_secret())
    found = await look(lang, allow_private=["127.0.0.1"])
    assert found["webhooks"].status is CheckStatus.OK
    assert f"{hook.id} (127.0.0.1)" in found["webhooks"].seen
    assert "secret-path" not in found["webhooks"].seen
    assert asked == []


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_an_address_in_the_own_network_is_told_with_the_setting_that_allows_it(db: Database, lang: Lang) -> None:
    await Webhooks(db).add("https://10.1.2.3/hook", ["outcome"], new_secret())
    result = (await look(lang))["webhooks"]
    assert result.status is CheckStatus.FAILED
    assert "1 (10.1.2.3)" in result.seen
    assert "PHONEDESK_WEBHOOKS__ALLOW_PRIVATE" in result.advice


async def test_a_name_that_leads_nowhere(db: Database) -> None:
    await Webhooks(db).add("https://nowhere.invalid/hook", ["outcome"], new_secret())
    result = (await look())["webhooks"]
    assert result.status is CheckStatus.FAILED
    assert "nowhere.invalid" in result.seen
    assert "phonedesk webhooks remove 1" in result.advice


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64"])
async def test_a_webhook_without_a_secret_can_sign_nothing(db: Database, secret: str) -> None:
    await Webhooks(db).add("https://192.0.2.1/hook", ["outcome"], secret)
    result = (await look())["webhooks"]
    assert (result.status, "rotate 1" in result.advice) == (CheckStatus.FAILED, True)


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_messages_that_were_given_up_are_counted(
    db: Database, receiver: tuple[str, list[str]], lang: Lang
) -> None:
    url, _ = receiver
    hook = await Webhooks(db).add(url, ["outcome"], new_secret())
    for number in range(3):
        await Webhooks(db).put(hook.id, Message(f"m{number}", "outcome", "{}"))
    async with db.write() as connection:
        wanted = sa.update(webhook_deliveries).where(webhook_deliveries.c.message_id != "m0")
        await connection.execute(wanted.values(state="dead", next_at=None))
    result = (await look(lang, allow_private=[urlsplit(url).hostname]))["webhooks"]
    assert result.status is CheckStatus.WARNING
    assert "2" in result.seen
    assert f"phonedesk webhooks deliveries {hook.id} --dead" in result.advice
    assert f"phonedesk webhooks retry {hook.id}" in result.advice


async def test_a_disabled_webhook(db: Database) -> None:
    hook = await Webhooks(db).add("http://127.0.0.1:9/hook", ["outcome"], new_secret())
    async with db.write() as connection:
        await connection.execute(sa.update(webhooks).values(disabled_at=db.now()))
    result = (await look(allow_private=["127.0.0.1"]))["webhooks"]
    assert (result.status, f"webhooks test {hook.id}" in result.advice) == (CheckStatus.WARNING, True)


async def test_senders_have_a_secret(db: Database) -> None:
    await IncomingWebhooks(db).add("shop", "run", new_secret())
    await IncomingWebhooks(db).add("crm", "answer", new_secret())
    result = (await look())["incoming"]
    assert (result.status, "shop" in result.seen) == (CheckStatus.OK, True)
    async with db.write() as connection:
        await connection.execute(
            sa.update(incoming_webhooks).where(incoming_webhooks.c.name == "crm").values(secret="")
        )
    result = (await look())["incoming"]
    assert result.status is CheckStatus.FAILED
    assert "crm" in result.seen
    assert "shop" not in result.seen
    assert "phonedesk webhooks incoming rotate crm" in result.advice
