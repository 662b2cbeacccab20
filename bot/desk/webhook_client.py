"""The delivery of a webhook's message: the targets that are allowed, and one attempt over HTTP.

Webhooks may go to public addresses over https, and to others that the owner allows. A person who may add a webhook
could otherwise have this machine send requests into its own network: to a router, a database, or the service that gives
a cloud machine its credentials. A name is resolved once and the connection goes to that very address, so that a name
cannot point elsewhere after it was checked. An attempt follows no redirect, reads only the beginning of the answer, and
takes at most TIMEOUT in all.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

import httpx2

from agent_core.errors import InputRejected, PhonedeskError
from agent_core.http import REQUEST_ERRORS, retry_after
from agent_core.proxies import ProxySetting
from agent_core.texts.clean import clean_text
from bot.app.release import NAME
from bot.desk.actors import BadRequest
from bot.desk.webhook_messages import headers
from storage.webhooks import Attempt, DeliveryRow, WebhookRow

LONGEST_URL = 2000
RESOLVING_SECONDS = 5.0
ALLOW = "PHONEDESK_WEBHOOKS__ALLOW_PRIVATE"
WEBHOOK_PROXY = ProxySetting("PHONEDESK_WEBHOOKS__PROXY")  # the environment decides
TIMEOUT = 15.0  # seconds, for all of an attempt
MOST_ANSWER = 1024  # bytes of an answer that are kept
LONGEST_PAUSE = 7 * 86400.0  # seconds
_PORTS = {"http": 80, "https": 443}
_UNICAST = ip_network("2000::/3")  # the only part of IPv6 that is given to machines on the internet, RFC 4291
_NAT64 = ip_network("64:ff9b::/96")  # its addresses hold IPv4 ones, RFC 6052

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Target:
    """A checked place to send to.

    address: the only one to connect to. host: for the Host header and the certificate.
    """

    scheme: str
    host: str
    port: int
    address: str
    path: str  # with the query

    @property
    def url(self) -> str:
        """The URL with the address in place of the name."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{address}:{self.port}{self.path}"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


async def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, the preferred one first. Raises OSError, or TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(RESOLVING_SECONDS):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


@dataclass(frozen=True, slots=True)
class TargetRules:
    """The rules for targets.

    allowed: names, addresses and networks that may be asked though private, also over http.
    """

    allowed: Sequence[str] = ()
    resolve: Resolve = resolved

    async def target(self, url: str) -> Target:
        """Return the target that ``url`` leads to now.

        Raises BadRequest if it is not an address that a webhook can have, InputRejected if it may not be asked, and
        OSError if its name cannot be resolved.
        """
        parts = checked_url(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS[parts.scheme]
        literal = _literal(host)
        found = [literal] if literal else [ip_address(each) for each in await self.resolve(host, port)]
        if not found:
            raise OSError(f"The name {host} has no address.")
        named = any(host.lower() == each.lower() for each in self.allowed)
        # Every address must be allowed: a name with a public and a private one is not its owner's mistake.
        if not named and not all(self._in_allowed(each) for each in found):
            refused = next((each for each in found if not self._in_allowed(each) and not _is_public(each)), None)
            if refused is not None:
                raise InputRejected(
                    f"{host} is the address {refused} of a private network.",
                    advice=f"If it is yours, allow it with {ALLOW}.",
                    key="webhook_private",
                    host=host,
                    address=refused,
                    setting=ALLOW,
                )
            if parts.scheme != "https":
                raise InputRejected(
                    "A webhook's address begins with https://.",
                    advice=f"For one in your own network, allow its host with {ALLOW}.",
                    key="webhook_https",
                    setting=ALLOW,
                )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(parts.scheme, host, port, str(found[0]), path)

    def _in_allowed(self, address: Address) -> bool:
        plain = _plain(address)
        for entry in self.allowed:
            try:
                network = ip_network(entry, strict=False)
            except ValueError:
                continue
            if plain in network:
                return True
        return False


def checked_url(url: str) -> SplitResult:
    """Return the parts of a webhook's URL. Raises BadRequest if it can be none."""
    try:
        parts = urlsplit(url)
        usual = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        plain = not (parts.username or parts.password or parts.fragment)
        known = usual and plain and bool((parts.hostname or "").encode("idna"))
    except ValueError:  # also of an international name that is none
        known = False
    if not known or len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise BadRequest(
            "This is no address for a webhook.",
            advice="Write it as https://HOST/PATH, without a user, a password or a #.",
            key="webhook_url",
        )
    return parts


def _literal(host: str) -> Address | None:
    """Return the address that ``host`` is; None for a name.

    Other spellings of one (0x7f.1) are left to the resolver, whose answer is checked.
    """
    try:
        return ip_address(host)
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inside is None and address in _NAT64:
        inside = IPv4Address(int(address) & 0xFFFFFFFF)
    # The deprecated form ::a.b.c.d; :: and ::1 are special anyway.
    if inside is None and int(address) >> 32 == 0 and int(address) > 1:
        inside = IPv4Address(int(address))
    return inside or address


def _is_public(address: Address) -> bool:
    """Tell whether an address is one machine on the internet: not private, shared, link-local, multicast or special."""
    plain = _plain(address)
    if isinstance(plain, IPv6Address) and plain not in _UNICAST:
        return False
    return plain.is_global and not (plain.is_multicast or plain.is_reserved or plain.is_link_local or plain.is_private)


# One attempt over HTTP ------------------------------------------------------------------------------------------------


PUBLIC_ONLY = TargetRules()


class WebhookClient:
    """The client that delivers messages. ``proxy``: decides how a host is reached."""

    def __init__(
        self, rules: TargetRules = PUBLIC_ONLY, proxy: ProxySetting = WEBHOOK_PROXY, *, seconds: float = TIMEOUT
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
