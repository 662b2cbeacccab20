from __future__ import annotations

from tests.support.telegram import bot, plain_logs, tg, user

__all__ = ["bot", "plain_logs", "tg", "user"]
