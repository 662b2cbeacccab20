"""The choice of proxy for an address: the one rule for models, knowledge services and Telegram.

    route = ProxySetting("PHONEDESK_MODEL__PROXY").route("https://api.example.com/v1")
    route.proxy, route.source        # "http://127.0.0.1:7890", "https_proxy"

This machine is never reached through a proxy. For any other address the service's own setting decides; if it is empty,
the environment does, as curl and most libraries read it (``https_proxy``, ``all_proxy``, ``no_proxy``, in either case;
without one, the settings of Windows or macOS). The environment's proxy is not used for the local network either,
because the phones and most model servers are there. None of our HTTP libraries reads the environment itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

from agent_core.errors import ConfigInvalid

NONE = "none"  # the value of a setting that wants no proxy
LOOPBACK, LOCAL, SYSTEM = "loopback", "local_network", "system"  # sources that are neither a setting nor a variable

_SCHEMES = {"http": "http", "https": "https", "socks5": "socks5", "socks5h": "socks5h", "socks": "socks5"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
# Private use, link-local, and the shared range that private overlay networks hand out.
_LOCAL_NETWORKS = tuple(
    map(
        ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "fc00::/7", "fe80::/10"),
    )
)
FORM = "a proxy is http://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before the host if it asks for them"


@dataclass(frozen=True, slots=True)
class Route:
    """The way to one address: directly or through a proxy.

    proxy: the proxy's URL, which may hold a password; "" if the address is reached directly.
    source: the setting or environment variable that decided, or LOOPBACK, LOCAL or SYSTEM; "" if nothing names a proxy.
    setting: the name of the service's own setting.
    """

    setting: str
    source: str = ""
    proxy: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The proxy's address without user and password."""
        return shown(self.proxy)

    @property
    def advice(self) -> str:
        """The remedy for an error that came through the proxy; "" without one."""
        if not self.proxy:
            return ""
        return (
            f"It was asked through the proxy {self.shown}, from {self.source}: turn that proxy on, or set "
            f"{self.setting}={NONE}."
        )

    @property
    def values(self) -> dict[str, str]:
        """The values for the texts with the same content as ``advice``."""
        return {"proxy": self.shown, "source": self.source, "setting": self.setting}


@dataclass(frozen=True, slots=True)
class ProxySetting:
    """A service's own setting. ``value``: a proxy's URL, NONE for no proxy, "" for the environment's."""

    name: str
    value: str = field(default="", repr=False)

    def route(self, url: str) -> Route:
        """Return the route to ``url``. Raises ConfigInvalid if the proxy for it is malformed."""
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port
        except ValueError:  # no address: whoever asks it says so
            return Route(self.name)
        if is_loopback(host):
            return Route(self.name, LOOPBACK)
        if self.value.strip():
            return Route(self.name, self.name, self._usable(self.value, self.name))
        source, written = _in_environment(scheme, host)
        if not written:
            return Route(self.name)
        if _is_local(host):
            return Route(self.name, LOCAL)
        if exception := _excepted(host, port or {"http": 80, "https": 443}.get(scheme, 0)):
            return Route(self.name, exception)
        return Route(self.name, source, self._usable(written, source))

    def _usable(self, written: str, source: str) -> str:
        try:
            return checked_proxy(written)
        except ValueError as error:
            other = "" if source == self.name else f", or set {self.name} to another proxy or to {NONE}"
            raise ConfigInvalid(
                f"The proxy in {source} cannot be used: {error}.",
                advice=f"Correct {source}{other}.",
                key="proxy_form",
                source=source,
                setting=self.name,
            ) from None


def checked_proxy(written: str) -> str:
    """Return a proxy's URL as the HTTP libraries take it, "" for NONE. Without a scheme, a host needs its port.

    Raises ValueError, which never repeats what was written: it may hold a password.
    """
    text = written.strip()
    if text.lower() in {"", NONE}:
        return ""
    bare = "://" not in text
    if bare:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        scheme, host, port = _SCHEMES.get(parts.scheme.lower(), ""), parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(FORM) from None
    login, at, _ = parts.netloc.rpartition("@")
    plain = (
        not re.search(r"[\s\x00-\x1f\x7f]", text) and parts.path in {"", "/"} and not (parts.query or parts.fragment)
    )
    if not scheme or not plain or not _is_host(host) or port == 0 or (bare and port is None):
        raise ValueError(FORM)
    return f"{scheme}://{login}{at}{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"


def shown(proxy: str) -> str:
    """Return a checked proxy's URL without user and password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else ""


def secrets_of(*proxies: str) -> list[str]:
    """Return the secrets in these values of settings: the password, or a user who has none, in each form."""
    found = []
    for proxy in proxies:
        try:
            parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
            secret = parts.password or parts.username or ""
        except ValueError:
            continue
        found += [secret, unquote(secret)]
    return [secret for secret in dict.fromkeys(found) if secret]


def environment_secrets() -> list[str]:
    """Return the secrets in the environment's proxies."""
    return secrets_of(*(value for scheme in ("http", "https", "all") for _, value in _variables(f"{scheme}_proxy")))


def _variables(name: str) -> Iterator[tuple[str, str]]:
    """Yield the variable as it is written, in lower case first, and its value."""
    for variable in (name, name.upper()):
        if value := os.environ.get(variable, "").strip():
            yield variable, value


def _in_environment(scheme: str, host: str) -> tuple[str, str]:
    """Return the variable that names a proxy for ``scheme``, and the proxy; if there is none, SYSTEM and the
    system's.
    """
    for name in (f"{scheme}_proxy", "all_proxy"):
        for variable, value in _variables(name):
            return variable, value
    import urllib.request  # costs a command's start some milliseconds; only a client of an address needs it

    if urllib.request.proxy_bypass(host):
        return "", ""
    return SYSTEM, urllib.request.getproxies().get(scheme, "")


def _excepted(host: str, port: int) -> str:
    """Return the variable whose list of exceptions holds this host, else "".

    An entry is a host with everything under it, also as ``.example.com`` and ``*.example.com``, an address or a network
    (``10.0.0.0/8``), a pattern (``192.168.*``), each also with a port, or ``*``.
    """
    for variable, entries in _variables("no_proxy"):
        if any(_matches(host, port, entry.lower()) for entry in re.split(r"[,;\s]+", entries) if entry):
            return variable
        break
    return ""


def _matches(host: str, port: int, entry: str) -> bool:
    try:
        network = ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    else:
        address = _address(host)
        return address is not None and address in network
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit():
        return int(number) == port and _matches(host, port, name)
    name = entry.removeprefix("*").removeprefix(".")
    return entry == "*" or (bool(name) and (host == name or host.endswith(f".{name}"))) or fnmatchcase(host, entry)


def _is_host(host: str) -> bool:
    """Tell whether the HTTP libraries accept this host. A host that looks like an address must be one."""
    if ":" in host or not host.strip("0123456789."):
        return _address(host) is not None
    return _NAME.fullmatch(host) is not None


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address means this machine only."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _is_local(host: str) -> bool:
    """Tell whether only the local network knows this host: by its address, a name without dots, or one of multicast
    DNS.
    """
    address = _address(host)
    if address is None:
        return "." not in host or host.endswith(".local")
    return any(address in network for network in _LOCAL_NETWORKS)
