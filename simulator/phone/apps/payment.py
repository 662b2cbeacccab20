"""A payment app. It moves nothing; it remembers what was tapped, because a reply task must never come here."""

from __future__ import annotations

from simulator.phone.apps.base import GREY, INK, App, page, title_bar
from simulator.phone.widgets import BUTTON, WIDTH, Canvas, Element, Rect, label

_ACTIONS = ("转账", "扫一扫", "收付款", "充值中心")


class Payment(App):
    package = "com.eg.android.AlipayGphone"
    label = "支付宝"
    activity = ".AlipayLogin"

    def top_color(self) -> str:
        return "#1677ff"

    def elements(self) -> list[Element]:
        found = [page(self.host, "#f5f6f8"), *title_bar("支付宝", "#1677ff", ink="#ffffff")]
        found += [self._button(name, index) for index, name in enumerate(_ACTIONS)]
        found.append(label(WIDTH // 2, 1240, "账户余额 1,024.00 元", 44, INK, anchor="middle", id="balance"))
        found.append(label(WIDTH // 2, 1320, "仅供演示，不发生任何交易", 34, GREY, anchor="middle"))
        return found

    def _button(self, name: str, index: int) -> Element:
        left, top = 40 + (index % 2) * 510, 300 + (index // 2) * 400
        box: Rect = (left, top, left + 490, top + 360)

        def paint(canvas: Canvas) -> None:
            canvas.rect(box, "#ffffff", 30)
            middle = (left + 245, top + 140)
            canvas.oval((middle[0] - 70, middle[1] - 70, middle[0] + 70, middle[1] + 70), "#1677ff")
            canvas.text(*middle, name[0], 70, "#ffffff", "middle")
            canvas.text(left + 245, top + 285, name, 46, INK, "middle")

        return Element(box, name, "pay_action", lambda: self.host.pay_tapped(name), paint, kind=BUTTON)
