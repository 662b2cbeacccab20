"""The WeChat-like app: the same pages in other colours."""

from __future__ import annotations

from simulator.phone.apps.chat_app import ChatApp


class WeChat(ChatApp):
    package = "com.tencent.mm"
    label = "微信"
    activity = ".ui.LauncherUI"
    prefix = "wechat:"
