"""The allowed values of single settings: read from a text as in the environment, and checked, one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from agent_core.errors import InputRejected
from agent_core.proxies import FORM, NONE, checked_proxy
from agent_core.texts import json_problem
from knowledge.config import providers_of

_SERVER_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})", re.ASCII)
# https://core.telegram.org/bots/api#authorizing-your-bot
_BOT_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_PIN = re.compile(r"[0-9]{4,16}")
HOST_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def _usable_database(url: str) -> str:
    """Check the URL of a database. The message never repeats the URL, which may hold a password."""
    if url:
        from storage.engine import database_url  # SQLAlchemy takes as long to load as all else that reads settings

        try:
            database_url(url)
        except ValueError:
            raise PydanticCustomError(
                "database_form", "a database is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
            ) from None
    return url


def password_of(url: str) -> str | None:
    """Return the password in a database's address, decoded; None if there is none. Raises ValueError for no address."""
    from sqlalchemy.engine.url import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).password
    except ArgumentError as error:
        raise ValueError(str(error)) from None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise PydanticCustomError("json_invalid", "it is no JSON: {error}", {"error": json_problem(error)}) from None


def _listed(value: object) -> object:
    """Split ``a:1,b:2`` from the environment; a JSON list is read, too."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return _json(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def _named(value: object) -> object:
    """Read ``S1=Counter,S2=Back office`` from the environment; a JSON object is read, too."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return _json(value)
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(serial.strip() and name.strip() for serial, _, name in pairs):
        raise PydanticCustomError("names_form", "write it as SERIAL=Name,SERIAL=Name")
    return {serial.strip(): name for serial, _, name in pairs}


def _told_apart(names: dict[str, str]) -> dict[str, str]:
    """Check that names are one line of 1 to 40 letters each, and that no two are alike."""
    plain = {serial: " ".join(name.split()) for serial, name in names.items()}
    if not all(0 < len(name) <= 40 for name in plain.values()):
        raise PydanticCustomError("name_length", "a phone's name has 1 to 40 letters")
    if len({name.casefold() for name in plain.values()}) < len(plain):
        raise PydanticCustomError("names_alike", "two phones have the same name")
    return plain


def _tagged(value: object) -> object:
    """Read tags by serial, from a JSON object or a table.

    A phone's tags are a list, or words with commas between them.
    """
    if isinstance(value, str):
        value = _json(value) if value.strip() else {}
    if not isinstance(value, dict):
        return value
    return {serial: _words(tags) for serial, tags in value.items()}


def _words(tags: object) -> object:
    return [word for word in re.split(r"[\s,，]+", tags) if word] if isinstance(tags, str) else tags


def _tag_form(tags: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Check that tags are one word of 1 to 24 letters each, and remove the # in front."""
    plain = {serial: tuple(dict.fromkeys(tag.lstrip("#") for tag in some)) for serial, some in tags.items()}
    if not all(0 < len(tag) <= 24 and not re.search(r"[\s,，]", tag) for some in plain.values() for tag in some):
        raise PydanticCustomError("tag_form", "a tag is one word of 1 to 24 letters")
    return plain


def _pins(pins: dict[str, SecretStr]) -> dict[str, SecretStr]:
    """Check PINs. The message never repeats a PIN."""
    if not all(_PIN.fullmatch(pin.get_secret_value().strip()) for pin in pins.values()):
        raise PydanticCustomError("pin_form", "a PIN has 4 to 16 digits; write it as SERIAL=1234,SERIAL=5678")
    return {serial: SecretStr(pin.get_secret_value().strip()) for serial, pin in pins.items()}


DatabaseUrl = Annotated[str, AfterValidator(_usable_database)]
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
Pins = Annotated[dict[str, SecretStr], NoDecode, BeforeValidator(_named), AfterValidator(_pins)]
Named = Annotated[dict[str, str], NoDecode, BeforeValidator(_named), AfterValidator(_told_apart)]
Tagged = Annotated[dict[str, tuple[str, ...]], NoDecode, BeforeValidator(_tagged), AfterValidator(_tag_form)]


def _known_zone(name: str) -> str:
    """Return the zone's key in the tz database, also for the name of a city."""
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        from scheduler.times.zones import parse_zone  # a command that has the key needs no scheduler

    try:
        return parse_zone(name).key
    except InputRejected as error:
        raise PydanticCustomError(
            "no_zone", "no time zone named “{said}”; use a name such as Asia/Shanghai", {"said": name}
        ) from error


ZoneName = Annotated[str, AfterValidator(_known_zone)]

_ADDRESS = re.compile(r"(?:[A-Za-z0-9][\w.\-]*|\[[0-9A-Fa-f:.%\w]+\]):[0-9]{1,5}", re.ASCII)


def _addresses(written: tuple[str, ...]) -> tuple[str, ...]:
    for address in written:
        if not _ADDRESS.fullmatch(address):
            raise PydanticCustomError(
                "address_form", "“{said}” is no address; write it as 192.168.1.20:5555", {"said": address[:100]}
            )
    return written


Addresses = Annotated[Listed, AfterValidator(_addresses)]


def _wda_addresses(written: tuple[str, ...]) -> tuple[str, ...]:
    """Take HOST:PORT or http://HOST:PORT; give HOST:PORT."""
    return _addresses(tuple(re.sub(r"^http://(.*?)/?$", r"\1", one, flags=re.IGNORECASE) for one in written))


WdaAddresses = Annotated[Listed, AfterValidator(_wda_addresses)]


def _host_names(written: tuple[str, ...]) -> tuple[str, ...]:
    for host in written:
        try:
            ip_network(host, strict=False)
        except ValueError:
            if not _SERVER_NAME.fullmatch(host):
                raise PydanticCustomError(
                    "host_form",
                    "“{said}” is no host; write a name, an address or a network, as desk.example.com, 10.0.0.5 or "
                    "10.0.0.0/8",
                    {"said": host[:100]},
                ) from None
    return written


HostNames = Annotated[Listed, AfterValidator(_host_names)]


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise PydanticCustomError("web_address", "it must begin with http:// or https:// and name a host")
    return url.strip()


def _web_address_or_none(url: str) -> str:
    return _web_address(url) if url.strip() else ""


def _public_url(url: str) -> str:
    """Return the URL of a server as SCHEME://HOST[:PORT], without a default port; "" for none."""
    url = url.strip()
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
        good = parts.scheme in {"http", "https"} and port != 0 and url.rstrip("/").endswith(parts.netloc)
        good = good and "@" not in parts.netloc and (bool(_SERVER_NAME.fullmatch(host)) or bool(ip_address(host)))
    except ValueError:
        good = False
    if not good:
        raise PydanticCustomError(
            "public_url", "it has the form https://desk.example.com, without a path, a query, a user or a #"
        )
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}" + (f":{port}" if port not in (None, _PORTS[parts.scheme]) else "")


def _proxy(written: str) -> str:
    """Check a proxy and return it as it was written. The message never repeats it, because it may hold a password."""
    try:
        checked_proxy(written)
    except ValueError:
        raise PydanticCustomError("proxy_form", "{form}; {none} means no proxy", {"form": FORM, "none": NONE}) from None
    return written.strip()


def _bot_token(token: SecretStr) -> SecretStr:
    plain = token.get_secret_value().strip()
    if plain and not _BOT_TOKEN.fullmatch(plain):
        raise PydanticCustomError("token_form", "a bot's token has the form 123456789:AA…, as @BotFather gives it")
    return SecretStr(plain)


def _filled(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("empty", "it must not be empty")
    return text


# Checked one by one, so that a problem with one does not hide a problem with another.
WebAddress = Annotated[str, AfterValidator(_web_address)]
WebAddressOrNone = Annotated[str, AfterValidator(_web_address_or_none)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
Proxy = Annotated[str, AfterValidator(_proxy)]
BotToken = Annotated[SecretStr, AfterValidator(_bot_token)]
Filled = Annotated[str, AfterValidator(_filled)]


def _dataset_id(written: str) -> str:
    if "://" in written:
        raise PydanticCustomError("dataset_form", "this is an address, not the id of a dataset")
    return written


DatasetId = Annotated[str, AfterValidator(_dataset_id)]


def _known_providers(written: str) -> str:
    return ",".join(providers_of(written))


KnownProviders = Annotated[str, AfterValidator(_known_providers)]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


# Which names there are is looked at in ``own``: the owner's folder adds to them.
ToolNames = Annotated[Listed, AfterValidator(_each_once)]


def checked_by(read: Callable[[str], object]) -> AfterValidator:
    """Return a validator for a text that ``read`` can read, or "off"; its InputRejected becomes the setting's error."""

    def check(text: str) -> str:
        try:
            read("" if text.strip().lower() == "off" else text)
        except InputRejected as error:
            raise PydanticCustomError("time_form", "{why}", {"why": error}) from None
        return "" if text.strip().lower() == "off" else text.strip()

    return AfterValidator(check)
