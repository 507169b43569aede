# SPDX-License-Identifier: Apache-2.0
"""Explains in words what a diff changes, for the engine's one-line view.

That view shows only names of top-level properties, without values. So we add a key that is a sentence, and the engine
shows the sentence. `--diff` leaves such a key out, because it has no value before or after. JSON in a string is decoded
before it is compared, as `--diff` does.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from catalog.nested import map_values
from components.platform.values import (
    MISSING,
    UNKNOWN,
    Diff,
    Properties,
    Secret,
    canonical_json,
    join_path,
    redact_secrets,
    reveal_secrets,
    secret_texts,
    value_at,
)
from launcher.escaping import terminal_line

_MOST = 4
_LONGEST_VALUE = 48
_FIRST_INDEX = re.compile(r"\[\d+\]")
_PLAIN = re.compile(r"[\w./:@=+%-]+")
_SECRET, _LATER = "[secret]", "(known later)"


@dataclass(frozen=True)
class _Line:
    path: str
    text: str
    replaces: bool


def diff_reasons(diff: Diff, old: Properties, new: Properties) -> list[str]:
    """The reasons, those of a replacement first. `old` and `new` mark secrets, which are named but never shown."""
    # Hide secrets before texts are shortened: a part of a secret would not be recognized.
    texts = secret_texts(old, new)

    def hide(part: Any) -> Any:
        return redact_secrets(part, texts) if isinstance(part, str) else part

    hidden = map_values(old, hide), map_values(new, hide)
    lines = [
        _Line(path, redact_secrets(text, texts), change.replaces)
        for key, change in diff.changes.items()
        for path, text in ([(key, change.reason)] if change.reason else _lines_of_key(key, *hidden))
    ]
    merged = sorted(_merge_lines(lines), key=lambda line: not line.replaces)
    shown = [terminal_line(f"{line.path}{':' if line.text else ''} {line.text}".strip()) for line in merged[:_MOST]]
    # The engine sorts the lines. This sign comes after every letter, so the count stays last.
    return [*shown, *([f"… {len(merged) - _MOST} more"] if len(merged) > _MOST else [])]


def as_path(reason: str) -> str:
    """A property path whose only key is the sentence."""
    return '["' + reason.replace('"', '\\"') + '"]'


def _lines_of_key(path: str, old: Properties, new: Properties) -> Iterator[tuple[str, str]]:
    before, after = value_at(path, old), value_at(path, new)
    if before in (MISSING, None) and after in (MISSING, None):
        return
    yield from _compare_values(path, before, after)


def _compare_values(path: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if isinstance(old, Secret) or isinstance(new, Secret):
        yield path, _SECRET
        return
    old, new = _decode_json(old), _decode_json(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({**old, **new}):
            before, after = old.get(key, MISSING), new.get(key, MISSING)
            if before is not after and (MISSING in (before, after) or not _are_equal(before, after)):
                yield from _compare_values(join_path(path, key), before, after)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(path, old, new)
    elif old in (MISSING, None):
        yield path, f"+ {_short_form(new)}"
    elif new in (MISSING, None):
        yield path, f"- {_short_form(old)}"
    else:
        yield path, f"{_short_form(old)} -> {_short_form(new)}"


def _are_equal(old: Any, new: Any) -> bool:
    marked = isinstance(old, Secret) or isinstance(new, Secret) or UNKNOWN in (old, new)
    return (
        old is new
        if marked and UNKNOWN in (old, new)
        else canonical_json(reveal_secrets(old)) == canonical_json(reveal_secrets(new))
    )


def _compare_lists(path: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, str]]:
    if len(old) == len(new) and all(isinstance(item, Mapping) for item in (*old, *new)):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            if not _are_equal(before, after):
                yield from _compare_values(f"{path}[{index}]", before, after)
    elif any(isinstance(item, Mapping | list) for item in (*old, *new)):
        gone, come = _count_items(old) - _count_items(new), _count_items(new) - _count_items(old)
        yield path, ", ".join(f"{sign}{sum(some.values())}" for sign, some in (("+", come), ("-", gone)) if some)
    else:
        yield from _compare_words(path, old, new)


def _count_items(items: list[Any]) -> Counter[str]:
    return Counter(canonical_json(reveal_secrets(item)) for item in items)


def _compare_words(path: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, str]]:
    """Compares word by word, as for a command line: an additional argument does not change those after it."""
    matcher = SequenceMatcher(
        a=[canonical_json(reveal_secrets(word)) for word in old],
        b=[canonical_json(reveal_secrets(word)) for word in new],
    )
    for kind, first, end, start, stop in matcher.get_opcodes():
        gone, come = " ".join(map(_short_form, old[first:end])), " ".join(map(_short_form, new[start:stop]))
        if kind == "replace":
            yield f"{path}[{first}]", f"{_cut_in_the_middle(gone)} -> {_cut_in_the_middle(come)}"
        elif kind != "equal":
            yield f"{path}[{first}]", f"- {_cut_in_the_middle(gone)}" if gone else f"+ {_cut_in_the_middle(come)}"


def _decode_json(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _short_form(value: Any) -> str:
    if isinstance(value, Secret):
        return _SECRET
    if value is UNKNOWN:
        return _LATER
    if isinstance(value, Mapping):
        name = value.get("name")
        return _short_form(name) if name else f"{{{len(value)}}}"
    if isinstance(value, list):
        return " ".join(map(_short_form, value)) if all(isinstance(item, str) for item in value) else f"[{len(value)}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return _cut_in_the_middle(value)
    return _cut_in_the_middle(json.dumps(value, ensure_ascii=False))


def _cut_in_the_middle(text: str) -> str:
    """Keeps both ends of a long text: long names of resources often differ at the end only."""
    half = _LONGEST_VALUE // 2
    return text if len(text) <= _LONGEST_VALUE else f"{text[:half]}…{text[-half:]}"


def _merge_lines(lines: list[_Line]) -> Iterator[_Line]:
    """Merges equal lines about several items of a list."""
    alike = Counter((_FIRST_INDEX.sub("[*]", line.path, count=1), line.text) for line in lines)
    done = set()
    for line in lines:
        path = _FIRST_INDEX.sub("[*]", line.path, count=1)
        if alike[path, line.text] == 1:
            yield line
        elif (path, line.text) not in done:
            done.add((path, line.text))
            yield _Line(path, line.text, line.replaces)
