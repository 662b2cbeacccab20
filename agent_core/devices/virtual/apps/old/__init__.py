"""The pages of the looks ``qq-old`` and ``wechat-old``: what was assumed before real screens were measured."""
