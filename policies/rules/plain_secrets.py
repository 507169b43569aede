# SPDX-License-Identifier: Apache-2.0
"""OpenPAI shows a job's text to everybody who may see the job. It hides only what is in `secrets`."""

import base64
import binascii
import bz2
from collections.abc import Iterator
from typing import Any

from catalog.secret_looks import holds_secret, looks_secret, names_secret
from policies.openpai_jobs import RUN, SECRETS, plain_texts, protocol_of_run, sample_openpai_run
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

# How a protocol refers to one of its secrets.
REFERENCE = "<% $secrets."
# Shorter values may be in a text by chance.
SHORTEST = 8
# How an archive of code begins in Base64, as a plan packs it.
ARCHIVE = base64.b64encode(b"BZh91AY").decode()[:8]


def judge_plain_secrets(resource: JudgedResource) -> PolicyVerdict:
    protocol = protocol_of_run(resource)
    secrets = [*_secret_texts(protocol.get(SECRETS) or {})]
    parts = [
        *(
            lambda name=name, value=value: judge_secret_parameter(name, value)
            for name, value in (protocol.get("parameters") or {}).items()
        ),
        *(lambda password=password: judge_password(password) for password in _registry_passwords(protocol)),
        *(lambda text=text: judge_text(text, secrets) for text in plain_texts(protocol)),
        # A secret whose value is not known here may also be in a plain text.
        *(lambda value=value: judge_readable(value) for value in (protocol.get(SECRETS) or {}).values()),
    ]
    return verdict_on_every(lambda part: part(), parts)


def judge_secret_parameter(name: str, value: Any) -> PolicyVerdict:
    text = str(value)
    if REFERENCE not in text and not _is_packed_code(text) and (names_secret(name, text) or looks_secret(text)):
        return fail_because(f"the parameter `{name}` holds what looks like a secret, in plain text")
    return PASS


def judge_password(password: Any) -> PolicyVerdict:
    return (
        PASS
        if str(password).startswith(REFERENCE)
        else fail_because("the password of an image's registry is in plain text")
    )


def judge_readable(secret: Any) -> PolicyVerdict:
    """A known value passes: the plain texts were compared with it. An unknown one makes the verdict `unknown`."""
    str(secret)
    return PASS


def judge_text(text: Any, secrets: list[str]) -> PolicyVerdict:
    plain = str(text)
    if any(secret in plain for secret in secrets):
        return fail_because("a value of its `secrets` is in plain text, too")
    words = [word for word in plain.split() if "$" not in word and not _is_packed_code(word)]
    return fail_because("holds what looks like a secret, in plain text") if any(map(holds_secret, words)) else PASS


def _registry_passwords(protocol: Any) -> Iterator[Any]:
    for prerequisite in protocol.get("prerequisites") or []:
        password = (prerequisite.get("auth") or {}).get("password")
        if password is not None:
            yield password


def _secret_texts(secrets: Any) -> Iterator[str]:
    """Values of secrets, as they are and decoded from Base64."""
    for value in secrets.values():
        if isinstance(value, str) and len(value) >= SHORTEST:
            yield value
            try:
                decoded = base64.b64decode(value, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                decoded = ""
            if len(decoded) >= SHORTEST:
                yield decoded


def _is_packed_code(text: str) -> bool:
    """Packed code looks as random as a secret."""
    return text.startswith(ARCHIVE)


def _image_with_password(password: Any) -> list[dict[str, Any]]:
    auth = {"username": "ann", "password": password}
    return [{"name": "image", "type": "dockerimage", "uri": "registry.example.com/train:1", "auth": auth}]


RULE = PolicyRule(
    id="plain-secrets",
    level="mandatory",
    asks="What a job on OpenPAI keeps secret is in its `secrets`, and nowhere else.",
    remedy="put the value into secrets and refer to it by `<% $secrets.name %>` (in the stack file: a `secure:`"
    " variable)",
    types=(RUN,),
    judge=judge_plain_secrets,
    passes={
        "no secrets": sample_openpai_run(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "ordinary parameters": sample_openpai_run(parameters={"epochs": 10, "max_tokens": "512", "model": "resnet50"}),
        "a reference": sample_openpai_run(
            parameters={"api_key": "<% $secrets.key %>"}, secrets={"key": "czNjcmV0LXZhbHVl"}
        ),
        "packed code": sample_openpai_run(
            parameters={"code": base64.b64encode(bz2.compress(bytes(range(256)))).decode()}
        ),
        "a registry's password by reference": sample_openpai_run(
            prerequisites=_image_with_password("<% $secrets.registry %>")
        ),
    },
    fails={
        "by its name": sample_openpai_run(parameters={"db_password": "hunter2hunter"}),
        "by its value": sample_openpai_run(parameters={"where": "https://ann:hunter2@example.com/data"}),
        "a registry's password": sample_openpai_run(prerequisites=_image_with_password("hunter2")),
        "in a command": sample_openpai_run(role={"commands": ["git clone https://ann:hunter2@example.com/train.git"]}),
        "a secret said twice": sample_openpai_run(
            secrets={"key": "czNjcmV0LXZhbHVl"}, parameters={"note": "its s3cret-value"}
        ),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a parameter of another resource": sample_openpai_run(
            parameters={"db_password": Unknown("protocol.parameters.db_password")}
        ),
    },
)
