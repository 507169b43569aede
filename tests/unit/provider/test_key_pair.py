# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:KeyPair` through the provider protocol."""

import base64
import hashlib
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from components.platform.values import UNKNOWN, Secret
from provider.plugin import Trainyard
from tests.support.provider_client import EngineSide, Failed, Resource, engine_side

KEY_PAIR = "trainyard:index:KeyPair"


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineSide]:
    with engine_side(Trainyard()) as client:
        yield client


@pytest.fixture(scope="module")
def made(engine: EngineSide) -> Resource:
    return engine.create(KEY_PAIR, "cluster", {})


def test_it_is_an_rsa_key_of_4096_bits_that_openssh_reads(made: Resource) -> None:
    private = serialization.load_ssh_private_key(made.outputs["privateKey"].value.encode(), None)
    public = serialization.load_ssh_public_key(made.outputs["publicKey"].encode())
    assert isinstance(private, rsa.RSAPrivateKey)
    assert isinstance(public, rsa.RSAPublicKey)
    assert private.key_size == 4096
    public.verify(private.sign(b"words", padding.PKCS1v15(), SHA256()), b"words", padding.PKCS1v15(), SHA256())
    blob = base64.b64decode(made.outputs["publicKey"].split()[1])
    assert made.id == made.outputs["fingerprint"]
    assert base64.b64decode(f"{made.id.removeprefix('SHA256:')}=") == hashlib.sha256(blob).digest()


def test_the_private_key_is_a_secret_and_is_never_printed(engine: EngineSide, made: Resource) -> None:
    assert isinstance(made.outputs["privateKey"], Secret)
    assert isinstance(engine.preview(KEY_PAIR, "cluster", {})["privateKey"], Secret)
    assert "PRIVATE KEY" not in engine.heard.everything


def test_another_rotation_makes_another_pair_and_nothing_else_does(engine: EngineSide, made: Resource) -> None:
    assert list(engine.diff(made, {}).replaces) == []
    assert list(engine.diff(made, {"rotation": 2}).replaces) == ["rotation"]
    refreshed = engine.refresh(made)
    assert refreshed is not None
    assert refreshed.outputs == made.outputs


def test_a_key_pair_cannot_be_imported(engine: EngineSide) -> None:
    with pytest.raises(Failed, match="cannot be imported"):
        engine.import_(KEY_PAIR, "cluster", "SHA256:x")


def test_invalid_inputs_of_a_key_pair_are_named(engine: EngineSide) -> None:
    assert engine.check(KEY_PAIR, "cluster", {"rotation": 0, "bits": 2048})[1] == [
        "bits: A key pair has no input `bits`; it has rotation.",
        "rotation: `0` is not a positive whole number.",
    ]
    assert engine.check(KEY_PAIR, "cluster", {"rotation": UNKNOWN})[1] == []
