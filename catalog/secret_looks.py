# SPDX-License-Identifier: Apache-2.0
"""Recognises secrets in plain text, by names and by values. Checks and policies use the same rows."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:PG|DB|MYSQL|REDIS|SMTP)?(?:PASSWORD|PASSWD|PASSPHRASE)|PWD_?SECRET|SECRETS?|TOKENS?|API_?KEYS?"
    r"|ACCESS_?KEYS?|PRIVATE_?KEYS?|SECRET_?KEYS?|STORAGE_?KEYS?|ACCOUNT_?KEYS?|KAGGLE_KEY|SIGNING_?KEYS?|ENCRYPTION_?KEYS?"
    r"|CREDENTIALS?|AUTH|(?:DB|USER|ADMIN|ROOT|MYSQL|POSTGRES|REDIS|SMTP|FTP|MONGO)_(?:PASS|PWD)|(?:GITHUB|GITLAB|GIT)_PAT)"
    r"(?:_[0-9]+)?$",
    re.IGNORECASE,
)
# Variables whose value is always a secret, even if it has digits only.
_PASSWORD = re.compile(r"PASSWORD|PASSWD|PASSPHRASE|_PASS$|_PWD$", re.IGNORECASE)
# Tokens of language models, which are no secrets.
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
# Tokens and keys that nothing else looks like, so that they can be taken out of any text. Passwords of addresses are
# taken out by launcher/escaping.py, on nodes too.
_TOKEN = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|(?:ghp|gho|ghs|ghu|github_pat)_[A-Za-z0-9_]{16,}|(?:glpat|xox[abp])[_-][A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])(?:hf_|sk-)[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*|AccountKey=[A-Za-z0-9+/=]{20,}",
    re.DOTALL,
)
# They are also how names begin (`hf_resnet_50_with_augmentation`), but those have no long piece with digits.
_LIKE_NAMES = ("hf_", "sk-")
_DENSE = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_PIECES = re.compile(r"[A-Za-z0-9]+")
LONG_PIECE = 16
_HEX = re.compile(r"[0-9a-fA-F-]+")


def names_secret(name: str, value: str) -> bool:
    """Whether a variable of this name probably holds a secret."""
    is_named_so = bool(SECRET_NAME.search(name)) and not _OF_LANGUAGE.search(name)
    return is_named_so and not _is_harmless(name, value)


def _is_harmless(name: str, value: str) -> bool:
    """Whether it is an amount or a switch: `MAX_TOKENS: "512"` is one, `DB_PASSWORD: "20240501"` is not."""
    return bool(_NO_SECRET.fullmatch(value)) and not (value.isdigit() and _PASSWORD.search(name))


def holds_secret(text: str) -> bool:
    """Whether a part of the text has the form of a key or token, such as a password in an address."""
    return any(pattern.search(text) for pattern in _SECRET_VALUES)


def without_tokens(text: str) -> str:
    """The text with a mask in place of each key or token, wherever somebody wrote it: as a name, a region, an image."""
    return _TOKEN.sub(lambda found: found[0] if _is_name(found[0]) else "****", text)


def _is_name(candidate: str) -> bool:
    pieces = [piece for piece in _PIECES.findall(candidate) if len(piece) >= LONG_PIECE]
    return candidate.startswith(_LIKE_NAMES) and not any(letter.isdigit() for piece in pieces for letter in piece)


def looks_secret(value: str) -> bool:
    """Whether the value has the form of a key or token, or is a long random word."""
    if holds_secret(value):
        return True
    if not _DENSE.fullmatch(value) or _HEX.fullmatch(value):
        return False
    # Names of models and folders are short words with signs between (`Llama-2-70B-Chat`). A key has a long one.
    return any(len(piece) >= LONG_PIECE and _is_random_piece(piece) for piece in _PIECES.findall(value))


def gives_secret(word: str, following: str) -> bool:
    """Whether a word gives a secret, as in `--token=x`, `--token x` or `TOKEN=x`."""
    name, _, value = word.partition("=")
    if _SECRET_OPTION.match(word):
        value = value or following
        return bool(value) and not value.lstrip("'\"").startswith(("$", "-"))
    assigns = name.isidentifier() and SECRET_NAME.search(name) and not value.lstrip("'\"").startswith("$")
    return bool(assigns and value and not _is_harmless(name, value))


def _is_random_piece(piece: str) -> bool:
    """Whether capitals, small letters and digits are mixed at random. Words in CamelCase change less often."""
    kinds = [(letter.islower(), letter.isupper()) for letter in piece]
    changes = sum(one != other for one, other in itertools.pairwise(kinds))
    counts = Counter(piece)
    entropy = -sum(count / len(piece) * math.log2(count / len(piece)) for count in counts.values())
    return len(set(kinds)) == 3 and changes > len(piece) / 3 and entropy > 3.5
