# SPDX-License-Identifier: Apache-2.0
"""Settings beside the keys by which a stack is planned: they decide where and as whom `up` acts, and what is waived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.secret_looks import looks_secret, names_secret
from components.platform.review import SECRET
from schemas.load import NAMESPACE
from schemas.scalars import is_secret
from trainyard.review.model import ProgramChange

_WAIVERS = f"{NAMESPACE}waivers"
# A longer value is cut.
_SHOWN_LETTERS = 240
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN_CREDENTIAL = "a credential in plain text"
_NOT_SET = "not set"


@dataclass(frozen=True, slots=True)
class SettingKind:
    """What settings of a kind decide. `usual`: every new stack has one. `hidden`: the value says nothing to people."""

    keys: re.Pattern[str]
    decides: str
    usual: bool = False
    hidden: bool = False


def _setting_kind(keys: str, decides: str, *, usual: bool = False, hidden: bool = False) -> SettingKind:
    # A key of YAML may have line breaks.
    return SettingKind(re.compile(keys, re.IGNORECASE | re.DOTALL), decides, usual, hidden)


_OF_SECRETS = (
    "whose key encrypts the stack's secrets: its owner can read every secret that is set from now on; check whose it is"
)
# The first row that fits. Keys of a stack file, then those of Pulumi.yaml.
_SETTING_KINDS = (
    _setting_kind("encryptionsalt|encryptedkey", _OF_SECRETS, usual=True, hidden=True),
    _setting_kind("secretsprovider", _OF_SECRETS),
    _setting_kind("environment", "an environment of Pulumi ESC: `up` takes its values, which are not known here"),
    _setting_kind(r".+:region", "in which region `up` acts", usual=True),
    _setting_kind(r".+:(allowed|forbidden)accountids", "in which accounts `up` may act"),
    _setting_kind(
        r".+:(.*endpoints?|.*ur[il]|.*proxy|customcabundle|insecure|skip.*|s3usepathstyle|domainnameoverride)",
        "where `up` sends its calls and credentials",
    ),
    _setting_kind(
        r".+:(assumerole.*|.*profile|shared.*files?|auth|(user|tenan).*|fingerprint|.*key|.*keypath|.*password"
        r"|.*tokens?|.*secret|.*credentials?.*)",
        "as whom `up` acts",
    ),
    _setting_kind(r"backend(\..*)?", "where the states of stacks are kept, and with them what is encrypted there"),
    _setting_kind(r"main|runtime(\..*)?", "which program `up` runs, and with which packages"),
    _setting_kind(r"(plugins|packages)(\..*)?", "which provider runs, with the credentials of whoever runs `up`"),
    _setting_kind(r"config\..+", "a value that every stack takes which does not set it"),
    _setting_kind(r"name|stackconfigdir", "which stack files `up` reads, and which of their keys"),
    _setting_kind(r".+:.*", "a setting of another provider or package"),
    _setting_kind(r".*", "a setting of Pulumi"),
)


def compare_stack_settings(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> tuple[ProgramChange, ...]:
    """Of the two sides of a stack file. `before` None: the stack is new. A removed stack decides nothing."""
    if after is None:
        return ()
    return (*compare_settings(_settings_of_file(before or {}), _settings_of_file(after), before is None),
            *_longer_waivers(_waivers_of_file(before or {}), _waivers_of_file(after)))  # fmt: skip


def compare_settings(
    before: Mapping[str, Any], after: Mapping[str, Any], is_new: bool = False
) -> Iterator[ProgramChange]:
    for key in sorted({**before, **after}):
        then, now = before.get(key), after.get(key)
        kind = next(kind for kind in _SETTING_KINDS if kind.keys.fullmatch(key))
        if _as_the_engine_reads(then) == _as_the_engine_reads(now) or (is_new and kind.usual):
            continue
        was, becomes = (_NOT_SET if value is None else setting_words(key, value) for value in (then, now))
        if kind.hidden or was == becomes:
            was, becomes = (_NOT_SET if value is None else "one" for value in (then, now))
            becomes = "another one" if was == becomes else becomes
        yield ProgramChange("settings", f"{key}: {was} -> {becomes}", (kind.decides,))


def setting_words(key: str, value: Any) -> str:
    """A value for people, without what is secret in it."""
    shown = _without_credentials(key, value)
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}…"


def is_plain_credential(key: str, value: Any) -> bool:
    if not isinstance(value, str) or value.startswith(SECRET):
        return False
    name = _WORD_BORDER.sub("_", re.split(r"[:.]", key)[-1])
    return names_secret(name, value) or looks_secret(value)


def _without_credentials(key: str, value: Any) -> Any:
    if is_secret(value):
        return "a secret"
    if isinstance(value, Mapping):
        # In Pulumi.yaml, `value` and `default` belong to the key above them.
        return {
            name: _without_credentials(key if name in ("value", "default") else str(name), item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without_credentials(key, item) for item in value]
    return _PLAIN_CREDENTIAL if is_plain_credential(key, value) else value


def _settings_of_file(data: Mapping[str, Any]) -> dict[str, Any]:
    config = data.get("config")
    own = config if isinstance(config, Mapping) else {}
    return {
        **{key: value for key, value in data.items() if key != "config"},
        **{
            key if ":" in key else f"config.{key}": value for key, value in own.items() if not key.startswith(NAMESPACE)
        },
    }


def _as_the_engine_reads(value: Any) -> Any:
    """`true` and "true" are one value for the engine, and so are an object and its JSON text."""
    if not isinstance(value, str):
        return value if isinstance(value, Mapping | list) or value is None else json.dumps(value, default=str)
    parsed = _parse_json_text(value)
    return parsed if isinstance(parsed, Mapping | list) else value


def _parse_json_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _waivers_of_file(data: Mapping[str, Any]) -> Mapping[str, Any]:
    config = data.get("config")
    waivers = _as_the_engine_reads(config.get(_WAIVERS)) if isinstance(config, Mapping) else None
    return waivers if isinstance(waivers, Mapping) else {}


def _longer_waivers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ProgramChange]:
    """Waivers that are new, or that end later, also of rules that do not fail yet."""
    for rule, waiver in after.items():
        earlier = before.get(rule)
        until, was = (str(given.get("until", "")) if isinstance(given, Mapping) else "" for given in (waiver, earlier))
        if until <= was:
            continue
        ends = f"until {until}" if not was else f"{was} -> {until}"
        reason = str(waiver.get("reason", "")) if isinstance(waiver, Mapping) else ""
        details = (f"its reason: {reason}", "as long as it is in force, a failure of the rule does not fail the stack")
        yield ProgramChange("waivers", f"waiver of `{rule}`: {ends}", details)
