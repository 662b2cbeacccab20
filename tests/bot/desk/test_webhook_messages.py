"""Signatures of webhooks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.desk.webhook_messages import headers, is_signed, new_secret, signature
from tests.support.webhook_receiver import signature_of

# The example of the Standard Webhooks libraries.
SECRET, ID, TIME = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
BODY = b'{"test": 2432232314}'


def test_the_published_example() -> None:
    right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(SECRET, ID, TIME, BODY) == right
    assert signature_of(SECRET, ID, str(TIME), BODY) == right, "the stand-in's own check"
    assert is_signed([SECRET], ID, TIME, BODY, f"v2,zzz v1a,x {right}")
    for header in ("", "v1,", right[3:], right.replace("v1", "v2"), right + "x", "v1,é"):
        assert not is_signed([SECRET], ID, TIME, BODY, header), header


@given(body=st.binary(max_size=200), message_id=st.text("abc_123", min_size=1), time=st.integers(0, 2**40))
@settings(max_examples=50)
def test_what_is_signed_is_known_by_its_secret_alone(body: bytes, message_id: str, time: int) -> None:
    one, other = new_secret(), new_secret()
    sent = headers([one, other], message_id, time, body)["webhook-signature"]
    assert sent.split() == [signature_of(key, message_id, str(time), body) for key in (one, other)]
    assert is_signed([other], message_id, time, body, sent)
    assert not is_signed([new_secret()], message_id, time, body, sent)
    assert not is_signed([one], message_id, time + 1, body, sent)
    assert not is_signed([one], message_id, time, body + b" ", sent)
