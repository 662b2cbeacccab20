"""A payment app. It moves nothing; it remembers taps, because a reply task must never come here.

The payment code and the password are on protected pages, which pictures show black.
"""

from __future__ import annotations

from simulator.phone.apps.base import GREY, INK, App, Host, page, title_bar
from simulator.phone.apps.fields import text_box
from simulator.phone.widgets import BUTTON, WIDTH, Canvas, Element, Handler, Rect, TextField, label

_ACTIONS = ("转账", "扫一扫", "收付款", "充值中心")
_BLUE = "#1677ff"


class Payment(App):
    package = "com.eg.android.AlipayGphone"
    label = "支付宝"
    activity = ".AlipayLogin"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.page = ""  # "" is the first one; else 转账, 收付款 or 支付密码
        self.amount = TextField()
        self.password = TextField()

    def top_color(self) -> str:
        return _BLUE

    def secret(self) -> bool:
        return self.page in ("收付款", "支付密码")

    def elements(self) -> list[Element]:
        back = self._leave if self.page else None
        title = title_bar(self.page or "支付宝", _BLUE, back=back, ink="#ffffff")
        found = [page(self.host, "#f5f6f8"), *title]
        match self.page:
            case "":
                found += [self._tile(name, index) for index, name in enumerate(_ACTIONS)]
                found.append(label(WIDTH // 2, 1240, "账户余额 1,024.00 元", 44, INK, anchor="middle", id="balance"))
                found.append(label(WIDTH // 2, 1320, "仅供演示，不发生任何交易", 34, GREY, anchor="middle"))
            case "转账":
                box = (48, 420, WIDTH - 48, 560)
                found.append(label(48, 360, "转账金额", 42, INK))
                found.append(text_box(self.host, self.amount, box, 56, 80, id_="amount", radius=16, hint="0.00"))
                found.append(self._button("确认转账", 700, lambda: self._go("支付密码")))
            case "收付款":
                found.append(label(WIDTH // 2, 500, "付款码", 56, INK, anchor="middle"))
                found.append(label(WIDTH // 2, 700, "2812 3456 7890 1234 56", 60, INK, anchor="middle", id="pay_code"))
            case _:
                box = (48, 500, WIDTH - 48, 620)
                found.append(label(WIDTH // 2, 400, "请输入支付密码", 50, INK, anchor="middle"))
                found.append(text_box(self.host, self.password, box, 56, 80, id_="password", radius=16))
                found.append(self._button("确认付款", 760, self._leave))
        return found

    def _tile(self, name: str, index: int) -> Element:
        left, top = 40 + (index % 2) * 510, 300 + (index // 2) * 400
        box: Rect = (left, top, left + 490, top + 360)

        def paint(canvas: Canvas) -> None:
            canvas.rect(box, "#ffffff", 30)
            middle = (left + 245, top + 140)
            canvas.oval((middle[0] - 70, middle[1] - 70, middle[0] + 70, middle[1] + 70), _BLUE)
            canvas.text(*middle, name[0], 70, "#ffffff", "middle")
            canvas.text(left + 245, top + 285, name, 46, INK, "middle")

        def tap() -> None:
            self.host.pay_tapped(name)
            if name in ("转账", "收付款"):
                self._go(name)

        return Element(box, name, "pay_action", tap, paint, kind=BUTTON)

    def _button(self, name: str, top: int, then: Handler) -> Element:
        box: Rect = (48, top, WIDTH - 48, top + 130)

        def paint(canvas: Canvas) -> None:
            canvas.rect(box, _BLUE, 20)
            canvas.text(WIDTH // 2, top + 65, name, 50, "#ffffff", "middle")

        def tap() -> None:
            self.host.pay_tapped(name)
            then()

        return Element(box, name, "pay_action", tap, paint, kind=BUTTON)

    def _go(self, name: str) -> None:
        self.host.focus_on(None)
        self.page = name

    def _leave(self) -> None:
        self.host.focus_on(None)
        self.page = "转账" if self.page == "支付密码" else ""

    def back(self) -> bool:
        inside = bool(self.page)
        self._leave()
        return inside

    def reset(self) -> None:
        self.page = self.amount.text = self.password.text = ""
