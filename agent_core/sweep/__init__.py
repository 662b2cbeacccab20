"""Finds out cheaply who has written something new: by the phone's notifications and the app's list, without a model."""

from __future__ import annotations

from agent_core.sweep.look import look_for_unread
from agent_core.sweep.result import IN_CHAT, Aside, ListMemory, LookOutcome, SetAside, UnreadLook, Waiting

__all__ = ["IN_CHAT", "Aside", "ListMemory", "LookOutcome", "SetAside", "UnreadLook", "Waiting", "look_for_unread"]
