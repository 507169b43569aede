# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for all stacks that the schema allows, and the values that the engine would pass for a stack
file."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from components.oci.stack import (
    ComputeTarget,
    ExistingLog,
    FlowLog,
    OciAccess,
    OciJob,
    OciNetwork,
    OciStack,
    Project,
    Vault,
)
from schemas.convert import unstructure_model
from schemas.load import NAMESPACE
from schemas.model import (
    Bucket,
    Completion,
    Git,
    Input,
    PortRange,
    Requirements,
    Retry,
    Role,
    Run,
    Secret,
    Shape,
    Uses,
    Waiver,
    Was,
)
from schemas.scalars import is_secret

names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
words = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
texts = words | st.sampled_from(["true", "0.10", "1e3", "007", "null", "~", "2026-01-01", "- x", "a: b", " padded "])
ocids = st.sampled_from(["ocid1.vcn.oc1.iad.aaaa", "ocid1.compartment.oc1..aaaa", "ocid1.key.oc1.iad.bbbb.abuw"])
variables = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
env = st.dictionaries(variables, texts | st.builds(Secret), max_size=2)
ports = st.builds(PortRange, st.integers(1, 65535), st.integers(1, 65535))
whole = st.integers(-(2**40), 2**40)
numbers = st.floats(0.1, 1e6, allow_nan=False) | st.integers(1, 1000).map(float)

# Fields whose schema allows fewer values than their type.
NARROW: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (OciStack, "team"): names,
    (OciStack, "environment"): names,
    (OciStack, "region"): texts,
    (OciStack, "platform"): st.just("oci"),
    (OciStack, "compartment"): ocids,
    (OciStack, "tenancy"): ocids,
    (OciStack, "jobs"): st.deferred(lambda: st.dictionaries(names, of(OciJob), max_size=2)),
    (OciStack, "tags"): st.dictionaries(words, texts, max_size=2),
    (OciStack, "waivers"): st.deferred(lambda: st.dictionaries(words, of(Waiver), max_size=1)),
    (Waiver, "reason"): words,
    (Waiver, "until"): st.dates().map(date.isoformat),
    (OciStack, "frameworks"): st.dictionaries(words, texts, max_size=1),
    (OciAccess, "domain_endpoint"): st.just("https://idcs.example.com"),
    (OciNetwork, "vcn"): ocids,
    (OciNetwork, "subnet"): ocids,
    (OciNetwork, "route_table"): ocids,
    (OciNetwork, "compartment"): ocids,
    (OciNetwork, "frameworks"): st.lists(texts, unique=True, max_size=2).map(tuple),
    (Bucket, "key"): ocids,
    (ExistingLog, "group"): ocids,
    (ExistingLog, "log"): ocids,
    (FlowLog, "group"): ocids,
    (FlowLog, "log"): ocids,
    (OciJob, "capacity_reservation"): ocids,
    (OciJob, "compute_target"): names,
    (OciStack, "compute_targets"): st.deferred(lambda: st.dictionaries(names, of(ComputeTarget), max_size=2)),
    (ComputeTarget, "instances"): st.integers(1, 99),
    (ComputeTarget, "boot_volume_gb"): st.integers(50, 999),
    (ComputeTarget, "existing"): ocids,
    (Project, "existing"): ocids,
    (Vault, "vault"): ocids,
    (Vault, "key"): ocids,
    (Vault, "secrets"): st.dictionaries(words, st.builds(Secret), max_size=2),
    (Uses, "take"): st.lists(st.sampled_from(["network", "access", "bucket"]), unique=True, min_size=1).map(tuple),
    (Shape, "ocpus"): numbers,
    (Shape, "memory_gb"): numbers,
    (Git, "commit"): st.just("9f2c1e7"),
    (Git, "secret"): ocids,
    (Was, "names"): st.lists(names, unique=True, max_size=2).map(tuple),
    (Retry, "count"): st.integers(0, 9),
    (Completion, "min_failed"): st.integers(-1, 9),
    (Completion, "min_succeeded"): st.integers(-1, 9),
    (Role, "replicas"): st.integers(0, 9),
    (Role, "env"): env,
    (Input, "mount"): st.just("/data"),
    (Run, "env"): env,
    (OciJob, "stall_minutes"): st.integers(0, 43200),
    (Run, "attempt"): st.integers(1, 9),
    (Run, "at_most"): st.none() | st.integers(1, 9),
    # Numbers that the engine and Python write in the same way.
    (Run, "each"): st.dictionaries(names, st.lists(texts | st.integers(-9, 9), max_size=2).map(tuple), max_size=2),
    (OciJob, "keep"): st.lists(texts, unique=True, max_size=2).map(tuple),
    (OciJob, "speaks"): st.lists(texts, unique=True, max_size=1).map(tuple),
    (Requirements, "build"): st.lists(names, unique=True, max_size=2).map(tuple),
    (OciJob, "roles"): st.deferred(lambda: st.dictionaries(names, of(Role), min_size=1, max_size=2)),
    (OciJob, "env"): env,
    (OciJob, "options"): st.dictionaries(words, st.booleans() | whole | numbers | texts, max_size=2),
    (OciJob, "ports"): st.dictionaries(words, ports | st.just("all"), max_size=2),
    (OciJob, "runs"): st.deferred(lambda: st.dictionaries(names, of(Run), max_size=2)),
}


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a dataclass of the model. Fields with a default are sometimes left out."""
    hints = get_type_hints(kind)
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for column in fields(kind):
        narrow = NARROW.get((kind, column.name))
        value = _of_type(hints[column.name]) if narrow is None else narrow
        without_default = column.default is MISSING and column.default_factory is MISSING
        (required if without_default else optional)[column.name] = value
    made = st.fixed_dictionaries(required, optional=optional).map(lambda values: kind(**values))
    return made.filter(lambda code: code.folder or code.git) if kind.__name__ == "Code" else made


def _of_type(hint: Any) -> st.SearchStrategy[Any]:
    if is_dataclass(hint):
        return st.deferred(lambda: of(hint))
    if get_origin(hint) in (Union, types.UnionType):
        # None means that the key is missing, so it is not generated.
        return st.one_of(*(_of_type(part) for part in get_args(hint) if part is not types.NoneType))
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        return st.lists(_of_type(get_args(hint)[0]), max_size=2).map(tuple)
    return {str: texts, bool: st.booleans(), int: whole, float: numbers}[hint]


stacks = of(OciStack)


def as_config(stack: OciStack) -> dict[str, Any]:
    """The content of `config:` in the stack file."""
    plain = unstructure_model(stack)
    rest = {key: value for key, value in plain.items() if key not in ("name", "region")}
    return {"oci:region": stack.region, **{NAMESPACE + key: value for key, value in rest.items()}}


def as_pulumi(config: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The values and the secret keys that the engine passes to a program for such a file."""
    values, secret = {}, []
    for key, value in config.items():
        opened = _decrypted(value)
        values[key] = opened if isinstance(opened, str) else json.dumps(opened)
        if opened != value:
            secret.append(key)
    return values, secret


def _decrypted(value: Any) -> Any:
    if isinstance(value, dict):
        return "in the clear" if is_secret(value) else {key: _decrypted(item) for key, item in value.items()}
    return [_decrypted(item) for item in value] if isinstance(value, list) else value
