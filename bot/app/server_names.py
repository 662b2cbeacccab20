"""The names that our servers answer to, in any protocol.

A page in a browser can make its own name lead to this machine (DNS rebinding) and then read the responses. It cannot
change the Host header, which holds that name. So requests for a host that is not configured are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import structlog

from bot.app.settings.sections import McpSettings, TelegramSettings, WebSettings

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(.*)")
_MOST_TOLD = 20  # hosts that the log names; an attacker can use any number of them

log = structlog.get_logger(__name__)


def place_of(host: str, port: int) -> str:
    """Return ``HOST:PORT`` as it stands in a URL: an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True)
class ServerNames:
    """The names of a server: this machine's own (loopback), ``names`` and ``networks``.

    setting: the environment variable that adds a name.
    public: the URL that people open, as SCHEME://HOST[:PORT]; "" if it is not set. Its host is among the names.
    """

    setting: str
    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    public: str = ""
    _told: set[str] = field(default_factory=set, compare=False, repr=False)

    def answers_to(self, host: str) -> bool:
        """Tell whether a Host header has one of our names: ``desk.example.com``, ``10.0.0.5:8737``, ``[::1]``."""
        parts = _HOST.fullmatch(host)
        if parts is None:
            return False
        name = (parts[1] or parts[2]).casefold().removesuffix(".")
        try:
            address = ip_address(name)
        except ValueError:
            return name == "localhost" or name in self.names
        return address.is_loopback or any(address in network for network in self.networks)

    def trusts_page_of(self, origin: str) -> bool:
        """Tell whether a page with this Origin header is one of ours.

        If the host is that of the public URL, scheme and port must be the same, too: another service under that name is
        not ours.
        """
        parts = _ORIGIN.fullmatch(origin)
        if parts is None or not self.answers_to(parts[1]):
            return False
        public = urlsplit(self.public)
        return urlsplit(origin).hostname != public.hostname or origin.casefold() == self.public

    def is_secret(self, origin: str) -> bool:
        """Tell whether a cookie for a page with this Origin header ("" for none) is sent only over HTTPS."""
        return (origin or self.public).startswith("https://")

    def refusal(self, host: str) -> dict[str, str]:
        """Return the JSON answer to a request for an unknown host. The first few hosts are logged."""
        if host not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(host)
            log.warning("unknown_host_refused", host=host[:200], advice=f"If it is yours, add it to {self.setting}.")
        said = f"This server does not go by the name that was asked for. Its owner can add it to {self.setting}."
        return {"error": "unknown_host", "message": said}


LOOPBACK = ServerNames("PHONEDESK_WEB__HOSTS")


def web_names(settings: WebSettings, telegram: TelegramSettings | None = None) -> ServerNames:
    """Return the names of the web server, with the public one, and the one in the URL of Telegram's webhook."""
    webhook = telegram.webhook_url if telegram and telegram.mode == "webhook" else ""
    hosts = [urlsplit(url).hostname for url in (settings.public_url, webhook)]
    names = _names("PHONEDESK_WEB__HOSTS", [settings.host, *settings.hosts, *(host for host in hosts if host)])
    return replace(names, public=settings.public_url)


CONSOLE = "/console"  # the path of the console


def web_address(settings: WebSettings, telegram: TelegramSettings | None = None, *, port: int = 0) -> str:
    """Return the URL under which people open the web server, without a path.

    It is the public one of the settings, else that of Telegram's webhook. Without either it has the first configured
    name that a browser can open, else this machine's own. ``port``: the one it listens on, if the settings leave that
    open.
    """
    if settings.public_url:
        return settings.public_url
    if telegram and telegram.mode == "webhook" and (webhook := urlsplit(telegram.webhook_url)).netloc:
        return f"{webhook.scheme}://{webhook.netloc}"
    hosts = [settings.host, *(host for host in settings.hosts if "/" not in host)]
    host = next((host for host in hosts if host not in ("0.0.0.0", "::")), "127.0.0.1")  # noqa: S104 - left out
    return f"http://{place_of(host, port or settings.port)}"


def mcp_names(settings: McpSettings) -> ServerNames:
    """Return the names of the MCP server."""
    return _names("PHONEDESK_MCP__HOSTS", [settings.host, *settings.hosts])


def _names(setting: str, hosts: Iterable[str]) -> ServerNames:
    """Return the names in ``hosts``, apart from 0.0.0.0 and ::, by which every browser reaches its own machine."""
    names, networks = set(), []
    for host in hosts:
        try:
            network = ip_network(host, strict=False)
        except ValueError:
            names.add(host.casefold().removesuffix("."))
        else:
            if not network.network_address.is_unspecified or network.num_addresses > 1:
                networks.append(network)
    return ServerNames(setting, frozenset(names), tuple(networks))
