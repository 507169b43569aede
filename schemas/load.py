# SPDX-License-Identifier: Apache-2.0
"""Two ways to load a Stack: from its file, and from the configuration that Pulumi gives a program."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path as FilePath
from typing import Any

from catalog.nested import map_values
from catalog.platforms import platforms, require_capability
from schemas.compose import schema_of, without_keys
from schemas.convert import ShapeError, camel_case, seal_secrets, structure_model, types_by_key
from schemas.findings import Finding, Path
from schemas.model import Stack
from schemas.name_suggestions import nearest_name
from schemas.project_file import project_value_problems
from schemas.scalars import finite_number, has_secret, is_secret, within_64_bits
from schemas.shape import Problem, key_namespaces, platform_of, shape_problems
from schemas.source import Source, read_source
from schemas.stack_file import StackFile

NAMESPACE = "trainyard:"
# The most that Linux allows in one environment variable, less its name and a margin.
MOST_CONFIGURATION = 128 * 1024 - 1024
_NEAR = 0.8
# Codes below this one are about the file as YAML.
FIRST_OF_SHAPE = "TY010"


@dataclass(frozen=True, slots=True)
class SoundPart:
    """A stack with examples in place of the values at `broken`, which are not usable."""

    stack: Stack
    broken: frozenset[Path]


@dataclass(frozen=True, slots=True)
class Loaded:
    """`stack` is None if the file's shape is too wrong to build one. Paths in the file start at `folder`.

    `sound` is then the part that checks can judge, if there is one (schemas/judge.py).
    """

    stack: Stack | None
    findings: tuple[Finding, ...]
    source: Source
    folder: FilePath
    sound: SoundPart | None = None

    def located(self, finding: Finding) -> Finding:
        """The finding with the file, line and column of its path."""
        line, column = self.source.position(finding.path)
        return replace(finding, file=self.source.file, line=line, column=column)


def stack_name(file: FilePath) -> str:
    """The stack's name: Pulumi calls the file of a stack `Pulumi.<stack>.yaml`."""
    return file.stem.removeprefix("Pulumi.")


def load_file(file: FilePath, shown_as: str | None = None) -> Loaded:
    """The Stack of a file, with opaque secrets, and every shape finding. It never raises because of the file's
    content."""
    source = read_source(file, shown_as)
    data = _with_texts_read(source.data) if isinstance(source.data, Mapping) else None
    if source.data is None and not source.findings:
        source.add("TY006", (), "is empty", "begin with `config:` and `trainyard:team:`; examples are in stacks/")
    elif source.data is not None and data is None:
        source.add("TY006", (), "is not a mapping", "begin with `config:`; examples are in stacks/")
    if data is not None:
        _add_values_of_project(source, file)
    return _finish_loading(source, data, stack_name(file), file.parent, opaque=True)


def load_config(
    values: Mapping[str, str], secret_keys: Collection[str], name: str, file: FilePath | None = None
) -> Loaded:
    """The Stack of the configuration that Pulumi gives a program: secrets are decrypted, `-c` overrides are applied.

    The file, if there is one, only gives the lines of findings, and the places of secrets inside objects.
    """
    source = read_source(file) if file is not None else Source(f"the configuration of stack {name}")
    written = source.data.get("config") if isinstance(source.data, Mapping) else None
    in_file: Mapping[str, Any] = written if isinstance(written, Mapping) else {}
    source.findings.clear()
    if file is not None:
        _add_values_of_project(source, file)
    model = require_capability(platform_of({"config": values}), StackFile).model
    config: dict[str, Any] = {}
    for key, text in values.items():
        hint = _type_of_key(model, key)
        value = text if hint in _TEXTS else _parse_json_text(text)
        if key in secret_keys and hint is not None:
            value = _with_secrets(value, in_file[key]) if has_secret(in_file.get(key)) else seal_secrets(hint, value)
        config[key] = value
    return _finish_loading(source, {"config": config}, name, file.parent if file else FilePath(), opaque=False)


def _add_values_of_project(source: Source, file: FilePath) -> None:
    written = source.data.get("config") if isinstance(source.data, Mapping) else None
    for problem in project_value_problems(file, written if isinstance(written, Mapping) else {}):
        source.add(*problem)


_TEXTS = (None, str, str | None)


def _type_of_key(model: Any, key: str) -> Any:
    """The type of one of our keys; None for other keys."""
    return types_by_key(model).get(key.removeprefix(NAMESPACE)) if key.startswith(NAMESPACE) else None


def _with_texts_read(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """`pulumi up -c trainyard:network='{…}'` writes an object into the file as JSON text. It is parsed here."""
    config = data.get("config")
    if not isinstance(config, Mapping):
        return data
    model = require_capability(platform_of(data), StackFile).model
    read = {
        key: _parse_json_text(value) if isinstance(value, str) and _type_of_key(model, key) not in _TEXTS else value
        for key, value in config.items()
    }
    return {**data, "config": read}


def _parse_json_text(text: str) -> Any:
    try:
        return json.loads(
            text,
            parse_int=lambda digits: within_64_bits(int(digits)),
            parse_float=finite_number,
            parse_constant=finite_number,
        )
    except (ValueError, OverflowError, RecursionError):
        return text


def _with_secrets(value: Any, in_file: Any) -> Any:
    """`value`, with each text wrapped as a secret that is `secure:` in the file."""
    if is_secret(in_file):
        return {"secure": value} if isinstance(value, str) else value
    if isinstance(value, Mapping) and isinstance(in_file, Mapping):
        return {key: _with_secrets(item, in_file.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(in_file, list):
        rest = [None] * (len(value) - len(in_file))
        return [_with_secrets(item, other) for item, other in zip(value, [*in_file, *rest], strict=False)]
    return value


def _finish_loading(
    source: Source, data: Mapping[str, Any] | None, name: str, folder: FilePath, *, opaque: bool
) -> Loaded:
    for problem in [] if data is None else _shape_problems(data, source):
        source.add(*problem)
    usable = data is not None and all(finding.severity != "error" for finding in source.findings)
    unused = frozenset(finding.path for finding in source.findings)
    stack = _build_stack(without_keys(data, unused), name, opaque) if usable else None
    findings = tuple(sorted(source.findings, key=lambda finding: (finding.line, finding.column, finding.code)))
    sound = None if stack is not None or data is None else _sound_part(data, source, name, opaque)
    return Loaded(stack, findings, source, folder, sound)


def _sound_part(data: Mapping[str, Any], source: Source, name: str, opaque: bool) -> SoundPart | None:
    from schemas.repair import meant_key, repair_data  # valid files need not wait for this import

    repair = repair_data(data)
    stack = _build_stack(repair.data, name, opaque) if repair is not None else None
    if repair is None or stack is None:
        return None
    # A duplicate key, or a text that the engine reads as another type, is not a usable value either.
    others = {finding.path for finding in source.findings if finding.code < FIRST_OF_SHAPE and finding.path[1:]}
    ours = schema_of(stack.platform)["$defs"]["config"]["properties"]
    unknown = (str(item.path[1]) for item in source.findings if item.code == "TY010" and len(item.path) == 2)
    others |= {("config", key) for name in unknown if (key := meant_key(name, ours))}
    others |= {("config", region_key(stack.platform))} if not stack.region else set()
    return SoundPart(stack, repair.broken | others)


def _shape_problems(data: Mapping[str, Any], source: Source) -> list[Problem]:
    problems = shape_problems(data, source.written)
    config = data.get("config")
    if not isinstance(config, Mapping):
        return problems
    region = platforms()[platform_of(data)].region
    if region and region.key not in config:
        remedy = f"add `{region.key}: {region.example}`, the region of the whole stack"
        problems.append(Problem("TY012", ("config",), f"`{region.key}` is missing", remedy))
    # Keys of other namespaces are ignored. A namespace that is nearly ours is probably a typing mistake.
    for key in config:
        namespace, _, name = key.partition(":")
        if name and _is_nearly_our_namespace(namespace) and namespace not in key_namespaces():
            ours = schema_of(platform_of(data))["$defs"]["config"]["properties"]
            keys = (own.removeprefix(NAMESPACE) for own in ours)
            remedy = f"did you mean `{NAMESPACE}{nearest_name(name, keys) or name}`?"
            problems.append(Problem("TY010", ("config", key), f"`{key}` is not known here", remedy))
    # The engine gives plugins the whole configuration in one environment variable. Linux limits its size.
    texts = {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in config.items()}
    size = len(json.dumps(texts))
    if size > MOST_CONFIGURATION:
        message = f"the configuration has {size} bytes; Pulumi's engine can pass on at most {MOST_CONFIGURATION}"
        remedy = "split the jobs into several stacks, or move variables into the image"
        problems.append(Problem("TY017", ("config",), message, remedy))
    return problems


def region_key(platform: str) -> str:
    """The key of the file for the region. Empty if the platform has none."""
    region = platforms()[platform].region
    return region.key if region else ""


def _is_nearly_our_namespace(namespace: str) -> bool:
    ours = NAMESPACE.removesuffix(":")
    if namespace == ours or abs(len(namespace) - len(ours)) > 2:
        return False
    from difflib import SequenceMatcher  # costs more to import than most files need

    return SequenceMatcher(None, namespace.casefold(), ours).ratio() >= _NEAR


def _build_stack(data: Mapping[str, Any], name: str, opaque: bool) -> Stack | None:
    config: Mapping[str, Any] = data["config"]
    if opaque:
        config = map_values(config, lambda part: {"secure": ""} if is_secret(part) else part)
    platform = platform_of(data)
    model = require_capability(platform, StackFile).model
    own = {camel_case(column.name) for column in fields(model)} - {"name", "region"}
    values = {key: config[NAMESPACE + key] for key in own if NAMESPACE + key in config}
    region = config.get(region_key(platform), "")
    if "platform" in values:
        # The one place where another spelling of a platform ends.
        values["platform"] = platform
    try:
        return structure_model(model, {**values, "name": name, "region": region})
    except ShapeError:
        return None
