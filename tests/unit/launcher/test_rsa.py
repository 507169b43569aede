# SPDX-License-Identifier: Apache-2.0
"""The launcher's own RSA against a library's: same signatures, same keys read, damaged ones refused."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.oci.principal import KeyFormError, read_pem

KEYS = {bits: rsa.generate_private_key(public_exponent=65537, key_size=bits) for bits in (1024, 2048, 3072)}
FORMS = (serialization.PrivateFormat.TraditionalOpenSSL, serialization.PrivateFormat.PKCS8)


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat = FORMS[1]) -> str:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@pytest.mark.parametrize("bits", KEYS)
@pytest.mark.parametrize("form", FORMS, ids=["PKCS1", "PKCS8"])
@settings(max_examples=20, deadline=None)
@given(message=st.binary(max_size=300))
def test_signatures_are_those_of_a_library(bits: int, form: serialization.PrivateFormat, message: bytes) -> None:
    key = KEYS[bits]
    assert read_pem(pem(key, form)).sign(message) == key.sign(message, PKCS1v15(), hashes.SHA256())


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 1700), flipped=st.integers(0, 255))
def test_a_damaged_key_signs_nothing_wrong(cut: int, flipped: int) -> None:
    """A damaged key is refused when it is read or used. It never causes another error or an invalid signature."""
    body = base64.b64decode("".join(pem(KEYS[1024]).splitlines()[1:-1]))
    damaged = bytearray(body)
    damaged[cut % len(body)] ^= flipped
    text = base64.encodebytes(bytes(damaged)).decode()
    try:
        signature = read_pem(f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----").sign(b"message")
    except KeyFormError:
        return
    KEYS[1024].public_key().verify(signature, b"message", PKCS1v15(), hashes.SHA256())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an RSA key in PEM form"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "not an RSA key"),
        ("-----BEGIN PRIVATE KEY-----\n!!\n-----END PRIVATE KEY-----", "damaged"),
        (pem(ec.generate_private_key(ec.SECP256R1())), "not an RSA key|damaged"),
        ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----", "encrypted"),
    ],
)
def test_unusable_keys_are_refused(text: str, why: str) -> None:
    with pytest.raises(KeyFormError, match=why):
        read_pem(text)


def test_keys_are_never_printed() -> None:
    key = read_pem(pem(KEYS[1024]))
    assert str(key.p) not in repr(key)
