"""A cheap look for who has written something new: the phone's notifications and the app's list of chats, no model."""

from __future__ import annotations

from agent_core.sweep.look import look_for_unread
from agent_core.sweep.result import IN_CHAT, Aside, ListMemory, LookOutcome, SetAside, UnreadLook, Waiting

__all__ = ["IN_CHAT", "Aside", "ListMemory", "LookOutcome", "SetAside", "UnreadLook", "Waiting", "look_for_unread"]
