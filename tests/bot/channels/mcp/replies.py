"""A task, and what the model replies at its steps."""

from __future__ import annotations

from tests.support.lab import do

TASK = "看看设置里有什么"
OPEN = do('do(action="Launch", app="设置")', "先打开设置")
HOME = do('do(action="Home")')
DONE = do('finish(message="看完了")')
ASK = do('do(action="Interact", question="看哪一项？")', "不知道看哪一项")
PAY = do('do(action="Tap", element=[500, 500], message="付款 10 元")')
