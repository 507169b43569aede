# SPDX-License-Identifier: Apache-2.0
"""A row of a type that the local plugin `oci` serves. Most of it follows from the token by the conventions of OCI's
API, of its SDK and of Oracle's provider, and a row says only what differs.

The calls are those of Oracle's provider, and so of `pulumi up`: `pulumi-oci` 5 is this provider behind a bridge. They
are read from its source, which tests/contract/test_oci_provider_source.py reads again where TRAINYARD_OCI_PROVIDER
names a copy. The local plugin makes these calls and no other but those of `stand_in`; components/oci/deployer.py
grants them.

In every life, what is created is read until it is `ready`, what is deleted until it is `gone` or answers 404; an update
is not waited for. A 404 of a read or a deletion counts as gone. Timeouts are 20 minutes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.values.resource_types import PluginType, ResourceType

Calls = tuple[str, ...]
# States of a usable resource, and of one that is gone, where they are not ACTIVE and DELETED.
_STATES_OF_SERVICE = {
    "core": ("AVAILABLE", "TERMINATED"),
    "artifacts": ("AVAILABLE", "DELETED"),
    "logging": ("ACTIVE", ""),
    "object_storage": ("", ""),
}
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


@dataclass(frozen=True, kw_only=True, eq=False)
class OciResourceType(ResourceType, PluginType):
    """A type that the local plugin serves too. Such a row is all that is known of the type."""

    # The SDK's package, whose name is also that of its client in components.oci.client.session.CLIENTS.
    service: str
    # The thing in names of operations (`vcn`: `create_vcn`), and the SDK's model of it.
    noun: str
    model: str
    # Inputs that precede the id in the SDK's calls.
    within: tuple[str, ...] = ()
    # Pulumi name -> API name, for top-level properties that break the convention.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # A service that answers 202 with a work request names the resource in it by this entity type.
    entity: str = ""
    waits_for_move: bool = True  # by the work request of a move, too
    delete_options: Mapping[str, str] = field(default_factory=dict)  # the SDK's option -> input
    # What Oracle's provider shows where the API answers with nothing.
    empty: Mapping[str, Any] = field(default_factory=dict)
    # The provider stores system tags of few types, although the API has them for many.
    shows_system_tags: bool = False
    # For people, and in OCIDs.
    words: str
    ocid_kind: str

    # Inputs that drift compares with those of the resource in its list. None: drift does not read the type.
    compared: tuple[str, ...] | None = None
    # Of these, the inputs that are compared by meaning: rules by the traffic that they allow, statements by the access
    # that they give.
    judged: frozenset[str] = frozenset()
    # Whether the list lacks some of these inputs, so that each resource has to be read too.
    is_listed_in_part: bool = False
    # The inputs that say where the list is.
    listed_by: tuple[str, ...]

    # The kind in catalog/oci_review.toml, if statements narrow it by name, and the input with the name.
    statement_kind: str = ""
    name_input: str = ""
    # Otherwise the words of statements that are about it, if drift reads statements of others about it.
    statement_types: tuple[str, ...] = ()

    # The file in the provider's source, below internal/service.
    source: str
    # All calls of a step, those that wait among them.
    create: Calls
    read: Calls
    update: Calls
    delete: Calls
    # All calls of an update of this input, where they are not those of `update`; `input:how` is one way to change it.
    changed: Mapping[str, Calls] = field(default_factory=dict)
    # All calls of a step where this input is set.
    given: Mapping[str, Mapping[str, Calls]] = field(default_factory=dict)
    # Calls in the source that nothing served here leads to, by what would.
    unreached: Mapping[str, Calls] = field(default_factory=dict)
    # Calls that only the local plugin makes: to adopt what a killed attempt has made, or to refuse at a preview what
    # the cloud would refuse.
    stand_in: Mapping[str, Calls] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The noun in names of models and calls: `RouteTable` of `CreateRouteTableDetails`."""
        return pascal_case(self.noun)

    @property
    def list_operation(self) -> str:
        return f"list_{re.sub('(?<![aeo])y$', 'ie', self.noun)}s"

    def attribute_of(self, name: str) -> str:
        """The attribute of an input in the SDK's model."""
        return snake_case(self.renamed.get(name, name))

    @property
    def updates_after_move(self) -> bool:
        return any(name.startswith("Update") for name in self.changed.get("compartmentId", ()))


_SETS = frozenset({"computed", "extra", "gone", "judged", "private_by", "ready", "replaced_by", "unordered"})
_LISTS = frozenset({
    "changed", "compared", "create", "delete", "given", "listed_by", "read", "stand_in", "statement_types", "unreached",
    "update", "within",
})  # fmt: skip


def oci_type(token: str, **differing: Any) -> OciResourceType:
    """The row of a type, with its lists as words in a text. `oci:Core/routeTable:RouteTable` is made by
    CreateRouteTable, and read by GetRouteTable until it is AVAILABLE, …; `differing` are the fields that break the
    conventions."""
    _, path, name = token.split(":")
    service, noun = snake_case(path.partition("/")[0]), differing.get("noun") or snake_case(name)
    package, stem = service.replace("_", ""), pascal_case(noun)
    wait = f"GetWorkRequest Get{stem}" if differing.get("entity") else ""
    update = f"Update{stem} {wait}"
    is_movable = "compartmentId" not in differing.get("replaced_by", "").split()
    ready, gone = _STATES_OF_SERVICE.get(service, ("ACTIVE", "DELETED"))
    fields: dict[str, Any] = {
        "service": service,
        "noun": noun,
        "model": name,
        "words": words_of_type(name),
        "ocid_kind": name.lower(),
        "tags": "freeformTags",
        "listed_by": differing.get("within") or "compartmentId",
        "source": f"{package}/{package}_{noun}_resource.go",
        "create": f"Create{stem} {wait or f'Get{stem}'}",
        "read": f"Get{stem}",
        "update": update,
        "delete": f"Delete{stem} Get{stem}",
        "changed": {"compartmentId": f"Change{stem}Compartment {update}"} if is_movable else {},
        "ready": ready,
        "gone": gone,
        **differing,
    }
    sets = {name: frozenset(fields[name].split()) for name in _SETS & fields.keys()}
    lists = {name: split_words(fields[name]) for name in _LISTS & fields.keys()}
    return OciResourceType(token=token, **{**fields, **sets, **lists})


def split_words(value: str | Mapping[str, Any]) -> Any:
    """The words of a text, or of each text in a map."""
    if isinstance(value, str):
        return tuple(value.split())
    return {key: split_words(item) for key, item in value.items()}


def snake_case(name: str) -> str:
    return _HUMP.sub(lambda letter: f"_{letter[0]}", name).lower()


def words_of_type(name: str) -> str:
    return snake_case(name).replace("_", " ")


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def pascal_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
