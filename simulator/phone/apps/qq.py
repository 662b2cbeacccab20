"""The QQ-like app. Resource ids, colours and places are those of ``agent_core/apps/qq.toml``."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from simulator.phone.apps.base import GREY, INK, PALE, page
from simulator.phone.apps.chat_app import ChatApp
from simulator.phone.widgets import BUTTON, EDIT, WIDTH, Canvas, Element, Rect, label


class QQ(ChatApp):
    package = "com.tencent.mobileqq"
    label = "QQ"
    activity = ".activity.SplashActivity"
    ai_name = "问AI"

    def elements(self) -> list[Element]:
        return self._login() if self.host.faults.not_logged_in else super().elements()

    def back(self) -> bool:
        return not self.host.faults.not_logged_in and super().back()

    def current_activity(self) -> str:
        return self.look.activities.login if self.host.faults.not_logged_in else super().current_activity()

    def open_url(self, url: str) -> bool:
        """Open ``mqqwpa://im/chat?chat_type=wpa&uin=NUMBER``: the chat with that QQ number.

        Return whether the app knows the form.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("mqqwpa", "mqqapi") or self.host.faults.not_logged_in:
            return parts.scheme in ("mqqwpa", "mqqapi")
        number = parse_qs(parts.query).get("uin", [""])[0]
        for chat in self.world.chats.values():
            if number and chat.number == number:
                self.open_chat(chat)
        return True

    def _login(self) -> list[Element]:
        box: Rect = (140, 1250, 940, 1370)
        field: Rect = (140, 820, 940, 940)
        secret: Rect = (140, 980, 940, 1100)

        def button(canvas: Canvas) -> None:
            canvas.rect(box, "#a6dcff", 60)
            canvas.text(540, 1310, "登录", 46, "#ffffff", "middle")

        def entry(place: Rect, hint: str) -> Element:
            def paint(canvas: Canvas) -> None:
                canvas.rect(place, "#f2f3f5", 60)
                canvas.text(540, (place[1] + place[3]) / 2, hint, 42, PALE, "middle")

            return Element(place, "", "", paint=paint, description=hint, kind=EDIT)

        return [
            page(self.host, "#ffffff"),
            label(WIDTH // 2, 520, "QQ", 150, INK, anchor="middle", bold=True),
            entry(field, "输入QQ号"),
            entry(secret, "输入QQ密码"),
            Element(box, "登录", "login_btn", lambda: self.host.log("login"), button, kind=BUTTON),
            label(WIDTH // 2, 1480, "登录已失效，请重新登录", 38, GREY, anchor="middle"),
        ]
