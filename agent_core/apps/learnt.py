"""What a phone has shown of an app, beside what the app's profile says of every phone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import structlog

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device
from agent_core.errors import DeviceError

log = structlog.get_logger(__name__)

SendsBy = Literal["button", "enter", "keyboard_key"]


@dataclass(frozen=True, slots=True)
class LearntApp:
    """One app in one version, as it was found on one phone.

    app: the profile's key.
    sends_by: what sends a text if no Send is seen after typing. "enter": the Enter key; "keyboard_key": the key of the
        keyboard that says 发送; "button": nothing but a button that is seen.
    """

    app: str
    version: str
    sends_by: SendsBy = "button"


async def version_of(device: Device, profile: AppProfile) -> str:
    """Return the version of the app on this phone; "" if the phone does not tell."""
    try:
        return await device.app_version(profile.packages[0]) or ""
    except DeviceError as error:
        log.info("app_version_unknown", app=profile.key, error=str(error))
        return ""
