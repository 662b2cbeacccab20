"""A strict Bot API server on this machine: for the demo, which needs no Telegram, and for the tests.

It accepts and refuses the same calls as Telegram, in Telegram's words. Needs the extra ``[demo]``.
"""

from simulator.telegram.people import FakeUser
from simulator.telegram.server import FakeTelegram
from simulator.telegram.world import Chat, Message

__all__ = ["Chat", "FakeTelegram", "FakeUser", "Message"]
