"""Identifies HTTP clients. The keys are the desk's: every channel of programs identifies them by the same function."""

from __future__ import annotations

from bot.desk.keys import actor_of_key

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="phonedesk"'}  # goes with each 401

__all__ = ["CHALLENGE", "actor_of_key"]
