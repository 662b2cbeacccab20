"""One attempt to deliver a webhook's message over HTTP.

It follows no redirect, connects to no other address than the checked one, reads only the beginning of the answer, and
takes at most TIMEOUT in all.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from datetime import datetime

import httpx2

from agent_core.errors import PhonedeskError
from agent_core.http import REQUEST_ERRORS, retry_after
from agent_core.proxies import ProxySetting
from agent_core.texts.clean import clean_text
from bot.app.release import NAME
from bot.desk.webhook_signature import headers
from bot.desk.webhook_target import TargetRules
from storage.webhooks import Attempt, DeliveryRow, WebhookRow

PUBLIC = TargetRules()
WEBHOOK_PROXY = ProxySetting("PHONEDESK_WEBHOOKS__PROXY")  # the environment decides
TIMEOUT = 15.0  # seconds, for all of an attempt
MOST_ANSWER = 1024  # bytes of an answer that are kept
LONGEST_PAUSE = 7 * 86400.0  # seconds


class WebhookClient:
    """The client that delivers messages. ``proxy``: decides how a host is reached."""

    def __init__(
        self, rules: TargetRules = PUBLIC, proxy: ProxySetting = WEBHOOK_PROXY, *, seconds: float = TIMEOUT
    ) -> None:
        self.rules = rules  # may be changed at any time
        self._proxy = proxy
        self._seconds = seconds
        self._certificates: ssl.SSLContext | None = None  # takes 20 ms to load

    async def attempt(self, hook: WebhookRow, message: DeliveryRow, now: datetime) -> Attempt:
        """Send a message once, signed now, and return the outcome. Network errors are not raised."""
        began = time.monotonic()
        status, error, answer, pause = None, "", "", None
        try:
            async with asyncio.timeout(self._seconds):
                status, answer, pause = await self._post(hook, message, now)
        except TimeoutError:
            error = f"no answer within {self._seconds:g} s"
        except PhonedeskError as refused:  # the address, or a proxy's setting
            error = refused.message
        except (*REQUEST_ERRORS, OSError) as failed:
            error = _why(failed)
        return Attempt(status, time.monotonic() - began, error, answer, pause)

    async def _post(self, hook: WebhookRow, message: DeliveryRow, now: datetime) -> tuple[int, str, float | None]:
        target = await self.rules.target(hook.url)
        body = message.body.encode()
        sent = {
            "Host": target.host_header,
            "Content-Type": "application/json",
            "User-Agent": NAME,
            "Accept-Encoding": "identity",
            **headers(hook.secrets(now), message.message_id, int(now.timestamp()), body),
        }
        if self._certificates is None:
            self._certificates = httpx2.create_ssl_context()  # reads their location from the environment
        async with (
            httpx2.AsyncClient(
                timeout=None,  # the whole attempt has one
                proxy=self._proxy.route(hook.url).proxy or None,
                trust_env=False,
                verify=self._certificates,
                follow_redirects=False,
            ) as client,
            client.stream(
                "POST", target.url, headers=sent, content=body, extensions={"sni_hostname": target.host}
            ) as response,
        ):
            pause = retry_after(response.headers.get("Retry-After", ""))
            if pause is not None:
                pause = min(pause, LONGEST_PAUSE)
            return response.status_code, await _beginning(response), pause


async def _beginning(response: httpx2.Response) -> str:
    """Return the first MOST_ANSWER bytes of an answer as text. It is never decompressed."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) >= MOST_ANSWER:
            break
    return clean_text(bytes(body[:MOST_ANSWER]).decode(errors="replace").replace("\0", ""))


def _why(error: Exception) -> str:
    """Return the network's error in one line, without the URL's address in front."""
    said = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
