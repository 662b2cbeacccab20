"""The names that our servers answer to, in any protocol.

A page in a browser can make its own name lead to this machine (DNS rebinding) and then read what is served here. It
cannot change the Host header, which holds that name. So requests for a host that is not configured are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
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
    """

    setting: str
    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
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
        """Tell whether a page with this Origin header is one of ours."""
        parts = _ORIGIN.fullmatch(origin)
        return parts is not None and self.answers_to(parts[1])

    def refusal(self, host: str) -> dict[str, str]:
        """Return the JSON answer to a request for an unknown host. The first few hosts are logged."""
        if host not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(host)
            log.warning("unknown_host_refused", host=host[:200], advice=f"If it is yours, add it to {self.setting}.")
        said = f"This server does not go by the name that was asked for. Its owner can add it to {self.setting}."
        return {"error": "unknown_host", "message": said}


LOOPBACK = ServerNames("PHONEDESK_WEB__HOSTS")


def web_names(settings: WebSettings, telegram: TelegramSettings | None = None) -> ServerNames:
    """Return the names of the web server. Telegram's webhook uses the public name in its URL."""
    webhook = urlsplit(telegram.webhook_url).hostname if telegram and telegram.mode == "webhook" else None
    return _names("PHONEDESK_WEB__HOSTS", [settings.host, *settings.hosts, *([webhook] if webhook else [])])


CONSOLE = "/console"  # the path of the console


def web_address(settings: WebSettings, telegram: TelegramSettings | None = None, *, port: int = 0) -> str:
    """Return the URL under which people open the web server, without a path.

    It is the public one of Telegram's webhook if there is one. Otherwise it has the first configured name that a
    browser can open, else this machine's own. ``port``: the one it listens on, if the settings leave that open.
    """
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
