"""The device's side of adb's authentication: the host's public key, and its signature of a token."""

from __future__ import annotations

import base64
import binascii
import hmac
import struct
from dataclasses import dataclass

TOKEN_BYTES = 20
_WORDS = 64  # of 32 bits: adb's keys are RSA 2048
_MODULUS_BYTES = _WORDS * 4
# The ASN.1 prefix of a SHA-1 digest in PKCS#1 v1.5: the token is signed as if it were such a digest.
_SHA1_PREFIX = bytes.fromhex("3021300906052b0e03021a05000414")


@dataclass(frozen=True, slots=True)
class PublicKey:
    modulus: int
    exponent: int
    comment: str = ""  # "user@host"

    @classmethod
    def parse(cls, blob: bytes) -> PublicKey:
        """Read a key as a host offers it: base64 of Android's key structure, a blank, a comment, NUL.

        Raises ValueError for any other form.
        """
        encoded, _, comment = blob.rstrip(b"\0").partition(b" ")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError("the offered key is not base64") from error
        if len(raw) != 4 + 4 + 2 * _MODULUS_BYTES + 4 or struct.unpack_from("<I", raw)[0] != _WORDS:
            raise ValueError("the offered key is not an RSA 2048 key of adb")
        modulus = int.from_bytes(raw[8 : 8 + _MODULUS_BYTES], "little")
        (exponent,) = struct.unpack_from("<I", raw, 8 + 2 * _MODULUS_BYTES)
        if modulus.bit_length() != _MODULUS_BYTES * 8 or exponent < 3:
            raise ValueError("the offered key is not a usable RSA key")
        return cls(modulus, exponent, comment.decode("utf-8", "replace"))

    def signed(self, token: bytes, signature: bytes) -> bool:
        """Tell whether the holder of this key has signed ``token``."""
        if len(signature) != _MODULUS_BYTES:
            return False
        tail = _SHA1_PREFIX + token
        wanted = b"\x00\x01" + b"\xff" * (_MODULUS_BYTES - 3 - len(tail)) + b"\x00" + tail
        value = int.from_bytes(signature, "big")
        if value >= self.modulus:
            return False
        return hmac.compare_digest(pow(value, self.exponent, self.modulus).to_bytes(_MODULUS_BYTES, "big"), wanted)
