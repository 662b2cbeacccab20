"""The texts of chat apps' notifications."""

from __future__ import annotations

from simulator.phone.apps.looks import Look
from simulator.phone.world import Chat, ContactKind, Message


def notification(look: Look, chat: Chat, message: Message) -> tuple[str, str]:
    """Return title and text of an app's notification of a message, as the newest of ``chat.unread``."""
    words = message.summary
    sender = message.sender
    if look.app == "wechat":
        who = sender if chat.kind is ContactKind.GROUP else chat.name
        if chat.unread > 1:
            return chat.name, f"[{chat.unread}条]{who}: {words}"
        return chat.name, f"{who}: {words}" if sender else words
    count = f"({chat.unread}条新消息)" if chat.unread > 1 else ""
    special = "[特别关心]" if chat.special else ""
    return f"{special}{chat.name}{count}", f"{sender}: {words}" if sender else words
