"""Webhooks over HTTP, for owners: those that are sent events, and those that other systems send to."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from bot.channels.web.api.operations import ApiCall, Line, Lines, Operations, Paged, Shown, Wish
from bot.desk.actors import NotFound, Role

operations = Operations("webhooks")
_DIGITS = 9  # of a webhook's number; a message's has twice as many at most


class ApiNewWebhook(Wish):
    """``events``: the kinds that are sent."""

    url: Annotated[str, Field(max_length=2000, examples=["https://shop.example.com/phonedesk"])]
    events: Annotated[Lines, Field(min_length=1, examples=[["question", "outcome"]])]


class ApiWebhook(Shown):
    """A webhook, without its secret.

    ``state``: `failing` after a failed attempt, `disabled` after its receiver answered 410. ``waiting``, ``dead``: how
    many messages wait, and how many were given up. ``old_secret_until``: until when the secret before signs, too.
    """

    id: int
    url: str
    events: list[str]
    state: Literal["active", "failing", "disabled"]
    waiting: int
    dead: int
    created_at: datetime
    old_secret_until: datetime | None


class ApiWebhooks(Shown):
    items: list[ApiWebhook]


class ApiWebhookSecret(Shown):
    """A webhook with its new secret, which is shown this once."""

    secret: str
    webhook: ApiWebhook


class ApiDelivery(Shown):
    """A message to a webhook, and its last attempt.

    ``message_id``: its `webhook-id`. ``status``: of the HTTP answer; null if there was none. ``seconds``: how long the
    attempt took. ``error``: why there was no answer, or why it was given up with another message. ``answer``: the first
    1 KB. ``next_at``: when it is sent again; null if it is not, or waits for another. ``waits_for``: the message that
    goes before it.
    """

    id: int
    message_id: str
    event: str
    state: Literal["pending", "delivered", "dead"]
    attempts: int
    status: int | None
    seconds: float | None
    error: str
    answer: str
    next_at: datetime | None
    waits_for: int | None
    created_at: datetime
    updated_at: datetime


class ApiDeliveryPage(Shown):
    """A page of messages, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiDelivery]
    next: str


class ApiDeliveriesQuery(Paged):
    state: Literal["", "pending", "delivered", "dead"] = ""


class ApiNewIncoming(Wish):
    """``may``: start runs, or answer questions. ``devices``: the only phones that it may use; none for all."""

    name: Annotated[Line, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["shop"])]
    may: Literal["run", "answer"]
    devices: Lines = Field(default_factory=list)


class ApiIncoming(Shown):
    """An incoming webhook, without its secret. Its address is `/hooks/{name}`."""

    name: str
    may: Literal["run", "answer"]
    devices: list[str] = Field(validation_alias="phones")
    created_at: datetime
    old_secret_until: datetime | None


class ApiIncomings(Shown):
    items: list[ApiIncoming]


class ApiIncomingSecret(Shown):
    """An incoming webhook with its new secret, which is shown this once."""

    secret: str
    webhook: ApiIncoming


@operations.get("/webhooks", Role.OWNER)
async def list_webhooks(call: ApiCall) -> ApiWebhooks:
    """List the webhooks."""
    return ApiWebhooks(items=[ApiWebhook.of(view) for view in await call.desk.webhooks.all(call.actor)])


@operations.post("/webhooks", Role.OWNER, status=201)
async def add_webhook(call: ApiCall, body: ApiNewWebhook) -> ApiWebhookSecret:
    """Add a webhook for the events from now on. Its secret is shown this once."""
    secret, view = await call.desk.webhooks.add(call.actor, body.url, body.events)
    return ApiWebhookSecret(secret=secret, webhook=ApiWebhook.of(view))


@operations.delete("/webhooks/{webhook_id}", Role.OWNER)
async def remove_webhook(call: ApiCall, webhook_id: str) -> ApiWebhook:
    """Remove a webhook, with its deliveries."""
    return ApiWebhook.of(await call.desk.webhooks.remove(call.actor, _number(webhook_id)))


@operations.post("/webhooks/{webhook_id}/rotate", Role.OWNER)
async def rotate_webhook(call: ApiCall, webhook_id: str) -> ApiWebhookSecret:
    """Give a webhook a new secret. For 24 hours messages are signed with the old one, too."""
    secret, view = await call.desk.webhooks.rotate(call.actor, _number(webhook_id))
    return ApiWebhookSecret(secret=secret, webhook=ApiWebhook.of(view))


@operations.post("/webhooks/{webhook_id}/test", Role.OWNER)
async def test_webhook(call: ApiCall, webhook_id: str) -> ApiDelivery:
    """Send a webhook a test message now. If it gets through, a disabled webhook is enabled."""
    return ApiDelivery.of(await call.desk.webhooks.test(call.actor, _number(webhook_id)))


@operations.get("/webhooks/{webhook_id}/deliveries", Role.OWNER)
async def list_deliveries(call: ApiCall, webhook_id: str, query: ApiDeliveriesQuery) -> ApiDeliveryPage:
    """List the messages to a webhook, the newest first."""
    views = await call.desk.webhooks.deliveries(
        call.actor,
        _number(webhook_id),
        state=query.state,
        before=query.before,
        limit=query.limit,
    )
    older = str(views[-1].id) if len(views) == query.limit else ""
    return ApiDeliveryPage(items=[ApiDelivery.of(view) for view in views], next=older)


@operations.post("/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", Role.OWNER)
async def retry_delivery(call: ApiCall, webhook_id: str, delivery_id: str) -> ApiDelivery:
    """Send a message again that was given up."""
    view = await call.desk.webhooks.retry(call.actor, _number(webhook_id), _number(delivery_id, 2 * _DIGITS))
    return ApiDelivery.of(view)


@operations.get("/incoming-webhooks", Role.OWNER)
async def list_incoming_webhooks(call: ApiCall) -> ApiIncomings:
    """List the incoming webhooks."""
    return ApiIncomings(items=[ApiIncoming.of(view) for view in await call.desk.incoming.all(call.actor)])


@operations.post("/incoming-webhooks", Role.OWNER, status=201)
async def add_incoming_webhook(call: ApiCall, body: ApiNewIncoming) -> ApiIncomingSecret:
    """Make an incoming webhook. Its secret is shown this once."""
    secret, view = await call.desk.incoming.add(call.actor, body.name, body.may, phones=body.devices)
    return ApiIncomingSecret(secret=secret, webhook=ApiIncoming.of(view))


@operations.post("/incoming-webhooks/{name}/rotate", Role.OWNER)
async def rotate_incoming_webhook(call: ApiCall, name: str) -> ApiIncomingSecret:
    """Give an incoming webhook a new secret. The old one holds for 24 hours."""
    secret, view = await call.desk.incoming.rotate(call.actor, name)
    return ApiIncomingSecret(secret=secret, webhook=ApiIncoming.of(view))


@operations.delete("/incoming-webhooks/{name}", Role.OWNER)
async def remove_incoming_webhook(call: ApiCall, name: str) -> ApiIncoming:
    """Remove an incoming webhook: its messages are refused from now on."""
    return ApiIncoming.of(await call.desk.incoming.remove(call.actor, name))


def _number(text: str, digits: int = _DIGITS) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > digits:
        raise NotFound(f"There is no webhook or message {text}.", key="no_webhook", id=text[:digits])
    return int(text)
