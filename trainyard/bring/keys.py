# SPDX-License-Identifier: Apache-2.0
"""Judges every key of a document by the rows of its kind, so that nothing is dropped silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.bring.notes import NoteTaker, shown_value
from trainyard.bring.yaml_text import Path, YamlDocument


def judge_document(document: YamlDocument, rows: Mapping[str, Mapping[str, Any]], taker: NoteTaker) -> None:
    """Notes what is not carried. Names that people choose are `*` in the path of a row."""
    _judge_below(document, document.data, (), "", rows, taker)


def _judge_below(
    document: YamlDocument, value: Any, path: Path, shown: str, rows: Mapping[str, Mapping[str, Any]], taker: NoteTaker
) -> None:
    if shown in rows or (shown and not isinstance(value, Mapping | list)) or (shown and not value):
        if shown not in rows and not value and value is not False and value != 0:
            return
        detail = "" if isinstance(value, Mapping | list) else f" ({shown_value(str(path[-1]), value)})"
        taker.judge_key(rows, shown, f"`{shown}`{detail}", document.line(*path))
    elif isinstance(value, Mapping):
        wild = f"{shown}.*" if shown else "*"
        chosen = any(key == wild or key.startswith(f"{wild}.") for key in rows)
        for key, below in value.items():
            own = f"{shown}.{key}" if shown else str(key)
            known = any(name == own or name.startswith(f"{own}.") for name in rows)
            _judge_below(document, below, (*path, key), wild if chosen and not known else own, rows, taker)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            _judge_below(document, below, (*path, index), shown, rows, taker)
