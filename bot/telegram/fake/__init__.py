"""A strict Bot API server on this machine: for the demo, which needs no Telegram, and for the tests.

It takes what Telegram takes and refuses what Telegram refuses, in Telegram's words. Needs the extra ``[demo]``.
"""

from bot.telegram.fake.people import FakeUser
from bot.telegram.fake.server import FakeTelegram
from bot.telegram.fake.world import Chat, Message

__all__ = ["Chat", "FakeTelegram", "FakeUser", "Message"]
