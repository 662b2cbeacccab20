"""The settings of the adapter."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime

from agent_core.proxies import ProxySetting, Route
from scheduler.times.shop import Quiet

TELEGRAM_PROXY = ProxySetting("PHONEDESK_TELEGRAM__PROXY")  # for callers that set no proxy


@dataclass(frozen=True, slots=True)
class TelegramOptions:
    """Settings of the Telegram channel. Times are in seconds.

    base_url, base_file_url: of one host; the token is appended directly.
    proxy: decides how that host is reached.
    webhook_url: public, ending in ``/telegram/webhook``; Telegram then calls us, without it we poll.
    read_seconds: how long to wait for an answer of Telegram. If it is asked again too soon, it does the same twice.
    pool_seconds: how long a call waits for a free connection.
    edit_private, edit_group: the least time between two edits in a chat of that kind.
    retry: the waits after the first, second … failure in a row; the last one is used from then on.
    topics: in a forum each phone has a topic of its own.
    give_up_seconds: a message that could not be sent for so long is given up.
    own_fault_seconds: the same for a message that alone fails while Telegram answers.
    """

    token: str = field(repr=False)
    base_url: str = "https://api.telegram.org/bot"
    base_file_url: str = "https://api.telegram.org/file/bot"
    proxy: ProxySetting = TELEGRAM_PROXY
    webhook_url: str = ""
    webhook_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    body_seconds: float = 10.0  # for the body of a webhook call
    poll_seconds: int = 30
    read_seconds: float = 30.0
    pool_seconds: float = 10.0
    edit_private: float = 1.2
    edit_group: float = 4.0
    retry: tuple[float, ...] = (1, 2, 4, 8, 16, 30)
    topics: bool = True
    give_up_seconds: float = 24 * 3600.0
    own_fault_seconds: float = 600.0
    quiet: Quiet | None = None  # the hours in which unrequested messages make no sound
    handling_seconds: float = 120.0  # an update's handler is given up after this
    stop_patience: float = 0.5  # how long a Stop waits for its person's earlier updates

    @property
    def route(self) -> Route:
        """The route to Telegram. Raises ConfigInvalid if the proxy is malformed."""
        return self.proxy.route(self.base_url)

    def is_quiet(self, moment: datetime) -> bool:
        return self.quiet is not None and self.quiet.holds(moment)

    def wait_after(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, from 1."""
        return self.retry[min(failures, len(self.retry)) - 1]

    def safe(self, error: object) -> str:
        """Return an error's words without the token, for logs and rows."""
        return str(error).replace(self.token, "***")
