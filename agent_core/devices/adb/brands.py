"""Phone makers: their names for the switches without which adb may not tap, change settings or install apps.

The advice itself is text in both languages (section ``brand`` of ``agent_core.texts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agent_core.errors import InputDenied, SettingsDenied
from agent_core.texts import Lang, Worded, say

Brand = Literal["xiaomi", "oppo", "vivo", "huawei", "honor", "samsung", "other"]
Refused = Literal["input", "install"]

PROPERTIES = ("ro.product.manufacturer", "ro.product.brand")
# The names that phones with a maker's own system give in PROPERTIES.
_NAMES: Mapping[str, Brand] = {
    "xiaomi": "xiaomi",
    "redmi": "xiaomi",
    "poco": "xiaomi",
    "oppo": "oppo",
    "realme": "oppo",
    "oneplus": "oppo",
    "vivo": "vivo",
    "iqoo": "vivo",
    "huawei": "huawei",
    "honor": "honor",
    "samsung": "samsung",
}


def brand_of(*names: str) -> Brand:
    """Return the brand for the values of ``PROPERTIES``.

    The later names count first: early Honor phones were made by Huawei and have Honor's menus.
    """
    known = (_NAMES.get(name.strip().lower()) for name in reversed(names))
    return next((brand for brand in known if brand is not None), "other")


def advice(brand: Brand, refused: Refused) -> Worded:
    """Return the owner's remedy if the phone refuses taps and settings (``input``) or apps (``install``)."""
    return Worded(f"brand.{brand}_{refused}")


def owner_steps(brand: Brand, lang: Lang) -> tuple[str, ...]:
    """Return the steps that only the owner of such a phone can do, one a line."""
    own = () if brand == "other" else tuple(say(lang, f"brand.{brand}_steps").split("\n"))
    return (*own, *say(lang, "brand.other_steps").split("\n"))


def input_denied(brand: Brand) -> InputDenied:
    """Return the error for taps and keys that the phone refuses (INJECT_EVENTS)."""
    how = advice(brand, "input")
    return InputDenied("The phone refuses taps and keys from outside.", advice=how, key="input_denied", how=how)


def settings_denied(brand: Brand) -> SettingsDenied:
    """Return the error for settings that the phone does not let adb change (WRITE_SECURE_SETTINGS)."""
    how = advice(brand, "input")
    return SettingsDenied(
        "The phone does not let its settings be changed over adb.", advice=how, key="settings_denied", how=how
    )
