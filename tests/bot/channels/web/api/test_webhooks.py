"""Webhooks over the API."""

from __future__ import annotations

from bot.desk.webhook_client import TargetRules, WebhookClient
from storage.webhooks import Attempt, Webhooks
from tests.bot.channels.web.api.conftest import Api
from tests.support.webhook_receiver import Reply, receiver


async def test_a_webhook_from_its_beginning_to_its_end(api: Api) -> None:
    api.desk.context.webhook_client = WebhookClient(TargetRules(("127.0.0.1",)))
    async with receiver() as to:
        status, made, _ = await api.ask("POST", "/webhooks", json={"url": to.url, "events": ["question"]})
        assert (status, made["webhook"]["state"], made["webhook"]["events"]) == (201, "active", ["question"])
        to.secret = made["secret"]
        place = f"/webhooks/{made['webhook']['id']}"
        listed = (await api.ask("GET", "/webhooks"))[1]["items"]
        assert [one["url"] for one in listed] == [to.url]
        assert "secret" not in listed[0]
        to.replies = [Reply(500, body=b"not now")]
        status, tried, _ = await api.ask("POST", f"{place}/test")
        assert (status, tried["state"], tried["status"], tried["answer"]) == (200, "dead", 500, "not now")
        to.secret = (await api.ask("POST", f"{place}/rotate"))[1]["secret"]
        assert to.secret != made["secret"]
        status, again, _ = await api.ask("POST", f"{place}/deliveries/{tried['id']}/retry")
        assert (status, again["state"]) == (200, "pending")
        taken = await Webhooks(api.db).take(made["webhook"]["id"])
        assert taken is not None
        await Webhooks(api.db).end(taken, Attempt(204, 0.1), again_at=api.db.now())
        assert (await api.ask("POST", f"{place}/test"))[1]["state"] == "delivered"
        status, page, _ = await api.ask("GET", f"{place}/deliveries", params={"limit": 1})
        assert [one["event"] for one in page["items"]] == ["test"]
        older = (await api.ask("GET", f"{place}/deliveries", params={"limit": 1, "cursor": page["next"]}))[1]
        assert [one["id"] for one in older["items"]] == [tried["id"]]
        assert (await api.ask("GET", f"{place}/deliveries", params={"state": "dead"}))[1]["items"] == []
        assert (await api.ask("DELETE", place))[1]["url"] == to.url
        assert (await api.ask("DELETE", place))[0] == 404
        assert to.wrong == []


async def test_what_is_refused(api: Api) -> None:
    for body, status in (
        ({"url": "https://10.0.0.1/", "events": ["question"]}, 400),
        ({"url": "https://[::ffff:127.0.0.1]/", "events": ["question"]}, 400),
        ({"url": "http://93.184.215.14/", "events": ["question"]}, 400),
        ({"url": "https://93.184.215.14/", "events": ["everything"]}, 400),
        ({"url": "https://93.184.215.14/", "events": []}, 400),
        ({"url": "https://u:p@93.184.215.14/", "events": ["question"]}, 400),
    ):
        assert (await api.ask("POST", "/webhooks", json=body))[0] == status, body
    for number in ("x", "0", "99999999999999", "١"):
        assert (await api.ask("POST", f"/webhooks/{number}/test"))[0] == 404
        assert (await api.ask("POST", f"/webhooks/1/deliveries/{number}/retry"))[0] == 404
    assert (await api.ask("GET", "/webhooks"))[1]["items"] == []


async def test_incoming_webhooks(api: Api) -> None:
    wish = {"name": "shop", "may": "run", "devices": ["S1"]}
    status, made, _ = await api.ask("POST", "/incoming-webhooks", json=wish)
    assert (status, made["secret"][:6], made["webhook"]["devices"]) == (201, "whsec_", ["S1"])
    assert (await api.ask("POST", "/incoming-webhooks", json=wish))[0] == 400
    for wrong in ({**wish, "name": "a/b"}, {**wish, "may": "stop"}, {**wish, "devices": ["nobody"]}):
        assert (await api.ask("POST", "/incoming-webhooks", json=wrong))[0] in {400, 404}
    status, again, _ = await api.ask("POST", "/incoming-webhooks/shop/rotate")
    assert (status, again["secret"] != made["secret"]) == (200, True)
    (listed,) = (await api.ask("GET", "/incoming-webhooks"))[1]["items"]
    assert (listed["name"], listed["may"], "secret" in listed) == ("shop", "run", False)
    assert (await api.ask("DELETE", "/incoming-webhooks/shop"))[0] == 200
    assert (await api.ask("DELETE", "/incoming-webhooks/shop"))[0] == 404
