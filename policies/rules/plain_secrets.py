# SPDX-License-Identifier: Apache-2.0
"""OpenPAI shows a job's text to everybody who may see the job. It hides only what is in `secrets`."""

import base64
import binascii
import bz2
from collections.abc import Iterator
from typing import Any

from catalog.secret_looks import holds_secret, looks_secret, names_secret
from policies.openpai_jobs import RUN, SECRETS, job, plain_texts, protocol_of
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, every, fail

# How a protocol refers to one of its secrets.
REFERENCE = "<% $secrets."
# Shorter values may be in a text by chance.
SHORTEST = 8
# How an archive of code begins in Base64, as a plan packs it.
ARCHIVE = base64.b64encode(b"BZh91AY").decode()[:8]


def judge(resource: JudgedResource) -> PolicyVerdict:
    protocol = protocol_of(resource)
    secrets = [*_secret_texts(protocol.get(SECRETS) or {})]
    parts = [
        *(lambda name=name, value=value: judge_parameter(name, value) for name, value in _parameters(protocol)),
        *(lambda password=password: judge_password(password) for password in _passwords(protocol)),
        *(lambda text=text: judge_text(text, secrets) for text in plain_texts(protocol)),
        # A secret whose value is not known here may also be in a plain text.
        *(lambda value=value: judge_readable(value) for value in (protocol.get(SECRETS) or {}).values()),
    ]
    return every(lambda part: part(), parts)


def judge_parameter(name: str, value: Any) -> PolicyVerdict:
    text = str(value)
    if REFERENCE not in text and not _is_archive(text) and (names_secret(name, text) or looks_secret(text)):
        return fail(f"the parameter `{name}` holds what looks like a secret, in plain text")
    return PASS


def judge_password(password: Any) -> PolicyVerdict:
    return PASS if str(password).startswith(REFERENCE) else fail("the password of an image's registry is in plain text")


def judge_readable(secret: Any) -> PolicyVerdict:
    """A known value passes: the plain texts were compared with it. An unknown one makes the verdict `unknown`."""
    str(secret)
    return PASS


def judge_text(text: Any, secrets: list[str]) -> PolicyVerdict:
    plain = str(text)
    if any(secret in plain for secret in secrets):
        return fail("a value of its `secrets` is in plain text, too")
    words = [word for word in plain.split() if "$" not in word and not _is_archive(word)]
    return fail("holds what looks like a secret, in plain text") if any(map(holds_secret, words)) else PASS


def _parameters(protocol: Any) -> Iterator[tuple[str, Any]]:
    yield from (protocol.get("parameters") or {}).items()


def _passwords(protocol: Any) -> Iterator[Any]:
    for prerequisite in protocol.get("prerequisites") or []:
        password = (prerequisite.get("auth") or {}).get("password")
        if password is not None:
            yield password


def _secret_texts(secrets: Any) -> Iterator[str]:
    """Values of secrets, as they are and decoded from Base64."""
    for value in secrets.values():
        if isinstance(value, str) and len(value) >= SHORTEST:
            yield value
            decoded = _decoded(value)
            if len(decoded) >= SHORTEST:
                yield decoded


def _is_archive(text: str) -> bool:
    """Packed code looks as random as a secret."""
    return text.startswith(ARCHIVE)


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _image(password: Any) -> list[dict[str, Any]]:
    auth = {"username": "ann", "password": password}
    return [{"name": "image", "type": "dockerimage", "uri": "registry.example.com/train:1", "auth": auth}]


RULE = PolicyRule(
    id="plain-secrets",
    level="mandatory",
    asks="What a job on OpenPAI keeps secret is in its `secrets`, and nowhere else.",
    remedy="put the value into secrets and refer to it by `<% $secrets.name %>` (in the stack file: a `secure:`"
    " variable)",
    types=(RUN,),
    judge=judge,
    passes={
        "no secrets": job(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "ordinary parameters": job(parameters={"epochs": 10, "max_tokens": "512", "model": "resnet50"}),
        "a reference": job(parameters={"api_key": "<% $secrets.key %>"}, secrets={"key": "czNjcmV0LXZhbHVl"}),
        "packed code": job(parameters={"code": base64.b64encode(bz2.compress(bytes(range(256)))).decode()}),
        "a registry's password by reference": job(prerequisites=_image("<% $secrets.registry %>")),
    },
    fails={
        "by its name": job(parameters={"db_password": "hunter2hunter"}),
        "by its value": job(parameters={"where": "https://ann:hunter2@example.com/data"}),
        "a registry's password": job(prerequisites=_image("hunter2")),
        "in a command": job(role={"commands": ["git clone https://ann:hunter2@example.com/train.git"]}),
        "a secret said twice": job(secrets={"key": "czNjcmV0LXZhbHVl"}, parameters={"note": "its s3cret-value"}),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a parameter of another resource": job(parameters={"db_password": Unknown("protocol.parameters.db_password")}),
    },
)
