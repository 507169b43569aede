# SPDX-License-Identifier: Apache-2.0
"""Checks of environment variables: reserved names, and secrets in plain text. Values are never printed."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator

from catalog.frameworks import Framework
from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import EnvValue, Stack

# Name or prefix -> why it is reserved, on every platform. A prefix ends with an underscore.
OWNED = {
    "TRAINYARD_": "trainyard's launcher reads it",
    "NODE_RANK": "it says which node this is",
    "RANK": "it says which process this is",
    "LOCAL_RANK": "it says which process this is",
    "WORLD_SIZE": "the number of processes follows from the roles",
    "MASTER_ADDR": "the launcher finds the main node's address",
    "MASTER_PORT": "it follows from `ports`",
    "TF_CONFIG": "the launcher writes it from the roles",
}
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:PG|DB|MYSQL|REDIS|SMTP)?(?:PASSWORD|PASSWD|PASSPHRASE)|PWD_?SECRET|SECRETS?|TOKENS?|API_?KEYS?"
    r"|ACCESS_?KEYS?|PRIVATE_?KEYS?|SECRET_?KEYS?|STORAGE_?KEYS?|ACCOUNT_?KEYS?|KAGGLE_KEY|SIGNING_?KEYS?|ENCRYPTION_?KEYS?"
    r"|CREDENTIALS?|AUTH|(?:DB|USER|ADMIN|ROOT|MYSQL|POSTGRES|REDIS|SMTP|FTP|MONGO)_(?:PASS|PWD)|(?:GITHUB|GITLAB|GIT)_PAT)"
    r"(?:_[0-9]+)?$",
    re.IGNORECASE,
)
# Variables whose value is always a secret, even if it has digits only.
_PASSWORD = re.compile(r"PASSWORD|PASSWD|PASSPHRASE|_PASS$|_PWD$", re.IGNORECASE)
# Tokens of language models: no secrets.
_OF_LANGUAGE = re.compile(
    r"(?:^|_)(?:PAD|EOS|BOS|UNK|SEP|CLS|MASK|STOP|START|END|SPECIAL|IMAGE)_TOKENS?$", re.IGNORECASE
)
# Values that are no secret: `MAX_TOKENS: "512"` is an amount, `USE_AUTH: "true"` a switch.
_NO_SECRET = re.compile(r"[0-9.]*|true|false|yes|no|on|off|none|null", re.IGNORECASE)
_SECRET_OPTION = re.compile(r"^--?[A-Za-z-]*(?:password|passwd|token|secret|api[-_]?key)(?:=|$)", re.IGNORECASE)
_SECRET_VALUES = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"\b(?:ghp|gho|ghs|ghu|github_pat|glpat|hf|xox[abp])[_-][A-Za-z0-9_-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."),
    re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    re.compile(r"://[^/\s:@]+:[^/\s@]+@"),
    re.compile(r"://[A-Za-z0-9_-]{20,}@"),
    re.compile(r"[?&](?:access_?token|private_?token|token|api_?key|password|secret|sig)=[^&\s$]{6,}", re.IGNORECASE),
    re.compile(r"\bAccountKey=[A-Za-z0-9+/=]{20,}"),
)
_DENSE = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_PIECES = re.compile(r"[A-Za-z0-9]+")
LONG_PIECE = 16
_HEX = re.compile(r"[0-9a-fA-F-]+")


def _variables(stack: Stack) -> Iterator[tuple[Path, str, EnvValue, str]]:
    """The path of each variable, its name and value, and its job."""
    for job, spec in stack.jobs.items():
        for name, value in spec.env.items():
            yield at("jobs", job, "env", name), name, value, job
        for role, part in spec.roles.items():
            for name, value in part.env.items():
                yield at("jobs", job, "roles", role, "env", name), name, value, job
        for run, one in spec.runs.items():
            for name, value in one.env.items():
                yield at("jobs", job, "runs", run, "env", name), name, value, job


def _owner(stack: Stack, name: str) -> str | None:
    upper, owned = name.upper(), {**OWNED, **stack.variables}
    if upper in owned:
        return owned[upper]
    return next((why for prefix, why in owned.items() if prefix.endswith("_") and upper.startswith(prefix)), None)


def _set_by(framework: Framework) -> set[str]:
    of_ads = framework.ads.environment if framework.ads else {}
    return {*framework.reserved, *framework.environment, *of_ads}


@rule("TY501", "a reserved environment variable")
def reserved(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for path, name, _, job in _variables(stack):
        framework = facts.framework(stack.jobs[job])
        why = _owner(stack, name)
        if why is None and framework is not None and name in _set_by(framework):
            why = f"{framework.name}'s launcher sets it"
        if why is not None:
            yield Wrong(path, f"`{name}` is reserved: {why}", "remove it, or use a name of your own")


@rule("TY502", "a secret in plain text, by its name")
def secret_name(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for path, name, value, _job in _variables(stack):
        if isinstance(value, str) and "${" not in value and names_secret(name, value):
            yield Wrong(
                path, f"`{name}` looks like a secret, and its value is in plain text", _make_secret(stack, path)
            )


def names_secret(name: str, value: str) -> bool:
    """Whether a variable of this name holds a secret, going by the name alone."""
    is_named_so = bool(_SECRET_NAME.search(name)) and not _OF_LANGUAGE.search(name)
    return is_named_so and not _is_harmless(name, value)


def _is_harmless(name: str, value: str) -> bool:
    """Whether it is an amount or a switch: `MAX_TOKENS: "512"` is one, `DB_PASSWORD: "20240501"` is not."""
    return bool(_NO_SECRET.fullmatch(value)) and not (value.isdigit() and _PASSWORD.search(name))


@rule("TY503", "a secret in plain text, by its value")
def secret_value(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for path, name, value, _job in _variables(stack):
        if isinstance(value, str) and not _SECRET_NAME.search(name) and looks_secret(value):
            yield Wrong(
                path, f"the value of `{name}` looks like a secret, and it is in plain text", _make_secret(stack, path)
            )


@rule("TY504", "a secret in a command, an address or a tag")
def secret_elsewhere(stack: Stack, _: Facts) -> Iterator[Wrong]:
    remedy = "keep it as a `secure:` environment variable, or in `trainyard:vault`"
    for path, words in _texts(stack):
        for word, following in zip(words, [*words[1:], ""], strict=False):
            if _gives_secret(word, following) or any(pattern.search(word) for pattern in _SECRET_VALUES):
                yield Wrong(path, "holds what looks like a secret in plain text", remedy)
                break


def _gives_secret(word: str, following: str) -> bool:
    """`--token=x`, `--token x` and `TOKEN=x`."""
    name, _, value = word.partition("=")
    if _SECRET_OPTION.match(word):
        value = value or following
        return bool(value) and not value.startswith(("$", "-"))
    assigns = name.isidentifier() and _SECRET_NAME.search(name) and not value.startswith("$")
    return bool(assigns and value and not _is_harmless(name, value))


def _texts(stack: Stack) -> Iterator[tuple[Path, list[str]]]:
    for name, job in stack.jobs.items():
        yield at("jobs", name, "command"), job.command.split()
        for role, part in job.roles.items():
            yield at("jobs", name, "roles", role, "command"), (part.command or "").split()
        for run, one in job.runs.items():
            yield at("jobs", name, "runs", run, "args"), list(one.args)
            for key, values in one.each.items():
                yield at("jobs", name, "runs", run, "each", key), [value for value in values if isinstance(value, str)]
        if job.code and job.code.git:
            yield at("jobs", name, "code", "git", "url"), [job.code.git.url]
    for key, value in stack.tags.items():
        yield at("tags", key), [value]


def looks_secret(value: str) -> bool:
    """Whether it has the form of a key or token, or is a long word too random to be anything else."""
    if any(pattern.search(value) for pattern in _SECRET_VALUES):
        return True
    return bool(_DENSE.fullmatch(value)) and not _HEX.fullmatch(value) and _is_random(value)


def _is_random(value: str) -> bool:
    """Names of models and folders are short words with signs between (`Llama-2-70B-Chat`). A key has a long one."""
    return any(len(piece) >= LONG_PIECE and _is_random_piece(piece) for piece in _PIECES.findall(value))


def _is_random_piece(piece: str) -> bool:
    """Whether capitals, small letters and digits are mixed at random. Words in CamelCase change less often."""
    kinds = [(letter.islower(), letter.isupper()) for letter in piece]
    changes = sum(one != other for one, other in itertools.pairwise(kinds))
    counts = Counter(piece)
    entropy = -sum(count / len(piece) * math.log2(count / len(piece)) for count in counts.values())
    return len(set(kinds)) == 3 and changes > len(piece) / 3 and entropy > 3.5


def _make_secret(stack: Stack, path: Path) -> str:
    return f"`trainyard secret set {stack.name} '{'.'.join(str(part) for part in path[1:])}'`"
