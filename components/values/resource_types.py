# SPDX-License-Identifier: Apache-2.0
"""What is known of each resource type: one row. The rows of a platform are in components/<platform>/types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from catalog.platforms import OWN_PROVIDER, platforms

if TYPE_CHECKING:
    from components.values.security_rules import SecurityRule

T = TypeVar("T")
# What a resource can be of a job, and of a stack: the words by which readers find resources on every platform.
JobPart = Literal["run", "job", "machine", "template"]
Part = Literal[
    JobPart,
    "network", "subnet", "security group", "security rule", "security list", "default security list", "route",
    "route table", "default route table", "route table association", "endpoint", "address association",
    "role", "policy", "inline policy", "policy attachment", "matched group", "folder",
    "bucket", "bucket acl", "public access block", "repository", "access link",
]  # fmt: skip


def input_names(text: str) -> frozenset[str]:
    """Paths of inputs, from their words."""
    return frozenset(text.split())


class LostWith(NamedTuple):
    """What goes with a resource that is deleted or replaced, and how not to lose it.

    `{name}` in both is the first of the inputs `named_by` that has a value, or else the resource's logical name."""

    words: str
    avoid: str = ""
    named_by: tuple[str, ...] = ()


class KeepsLess(NamedTuple):
    """An input by which a resource keeps less of what is in it, though it stays: fewer days, or no longer `on`.

    `input` is a path, through lists too, where the lowest number counts. `{before}` and `{after}` in the words are
    days. `without`: the days where the input has no value.

    `only`: inputs on the path's second step, such as the status of a rule, with the values under which the number
    counts; None is no value. `unit`: the input there that names the number's unit. `of`: the input with the other
    resource that keeps less, `{of}` in the words: a new resource of such a type can lose something, too."""

    input: str
    words: str
    avoid: str
    on: str = ""
    without: float = inf
    only: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    unit: str = ""
    of: str = ""


COPY_FIRST = "copy what is needed first"
NO_OLD_VERSIONS = "no older versions are kept from now on: what is overwritten or deleted is gone"


class StandingCost(NamedTuple):
    """What costs money while it stands, whether or not anything trains. No price is known here: a team may have rows of
    its own, by `what`."""

    what: str
    # Inputs with the values that cost something. Empty: each resource does.
    only: Mapping[str, str] = MappingProxyType({})


class KeptBy(NamedTuple):
    """The input that keeps what is there from being overwritten, and its values that do.

    `but_for`: an input with patterns of tags that are left out."""

    input: str
    values: tuple[Any, ...]
    but_for: str = ""


class OwnPolicy(NamedTuple):
    """The policy of a resource, which names others."""

    what: str
    # The inputs with the resource's name, and with the policy.
    named_by: str
    policy: str
    # Whether its statements name resources. Otherwise the resource itself is meant.
    names_resources: bool = False


# Of the types of providers themselves.
PROVIDERS = "pulumi"
# In place of the names of all inputs.
EVERY_INPUT = "*"
# Inputs that mean the same on every type.
_WORDS_FOR_PEOPLE = "displayName description definedTags freeformTags tags"


@dataclass(frozen=True, eq=False)
class InputsInReviews:
    """What a review makes of the inputs of a type. It names every change of an input that is not here.

    `judged`: sections of the review say what their values mean. `planned`: they follow from the stack's plan, whose
    changes the review says; where the plan stays the same, a change is named. `placed`: they mean nothing by themselves
    in a new resource, such as the place where it is made; a change is named. `initial`: they do so in a new stack only:
    they set something of another resource. `plain`: reason -> inputs whose values need no decision. `in_any_order`:
    lists whose order the provider keeps, but which mean the same in any order.
    """

    judged: frozenset[str]
    planned: frozenset[str]
    placed: frozenset[str]
    initial: frozenset[str]
    plain: Mapping[str, str]
    in_any_order: frozenset[str]

    def listed(self, *, in_new_resource: bool, in_new_stack: bool, where_plan_changes: bool) -> frozenset[str]:
        """The inputs that a review need not name."""
        found = self.judged | input_names(" ".join(self.plain.values()))
        found |= self.planned if where_plan_changes else frozenset()
        found |= self.placed if in_new_resource else frozenset()
        return found | (self.initial if in_new_stack else frozenset())


def inputs_in_reviews(
    judged: str = "",
    planned: str = "",
    placed: str = "",
    initial: str = "",
    plain: Mapping[str, str] = MappingProxyType({}),
    in_any_order: str = "",
) -> InputsInReviews:
    """The lists as words in a text."""
    return InputsInReviews(
        judged=input_names(judged),
        planned=input_names(planned),
        placed=input_names(placed),
        initial=input_names(initial),
        plain={"words and labels for people": _WORDS_FOR_PEOPLE, **plain},
        in_any_order=input_names(in_any_order),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ResourceType:
    """A row, by the names that Pulumi's provider has for inputs. A path of an input covers what lies below it."""

    token: str
    # The input with its tags. Empty if it has none.
    tags: str = ""
    # Inputs whose change needs a new resource.
    replaced_by: frozenset[str] = frozenset()
    # Inputs that the cloud fills in: leaving one out later changes nothing.
    computed: frozenset[str] = frozenset()
    # Lists that are the same in any order.
    unordered: frozenset[str] = frozenset()
    # Inputs of which one is given: giving another one instead needs a new resource.
    one_of: frozenset[str] = frozenset()
    lost: LostWith | None = field(default=None, repr=False)
    keeps_less: tuple[KeepsLess, ...] = field(default=(), repr=False)
    standing: StandingCost | None = None
    # What lets nobody push a tag of an image again.
    immutable_by: KeptBy | None = None
    # What comes before a repository's name in the names of its images: a pattern, with the group `owner`.
    image_host: str = ""
    own_policy: OwnPolicy | None = None
    # The input with a document that says what its holders may do, and the most characters of any document of it: the
    # cloud does not count spaces.
    document: str = ""
    most_characters: int = 10_240
    # The inputs that name who holds such a policy, with the kinds of these principals.
    holders: Mapping[str, str] = field(default_factory=dict)
    part: Part | None = None
    # Inputs that, where true, give machines public addresses, and such that prohibit them, which without one are given.
    public_by: frozenset[str] = frozenset()
    private_by: frozenset[str] = frozenset()
    # Reads the security rules in its inputs.
    security_rules: Callable[[Mapping[str, Any]], Iterable[SecurityRule]] | None = field(default=None, repr=False)
    # None: reviews do not judge the type, and name every change.
    in_reviews: InputsInReviews | None = field(default=None, repr=False)
    # Why no input of such a resource can grant access or open a way. Empty: some can.
    harmless: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class PluginType:
    """What the plugin of a local cloud knows of a type that it serves, on every platform."""

    # The API's states of a usable resource, and of one that no longer exists.
    ready: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    # States from which the resource never becomes ready.
    failed: frozenset[str] = frozenset({"FAILED"})
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # Inputs of the provider that the API's models lack.
    extra: frozenset[str] = frozenset()
    # The input with the unique name, which by default is derived from the resource's.
    named: str = ""
    # How a stack file uses an existing one, for the remedy when the name is taken; `{}` is the name.
    existing: str = ""
    # A class in the plugin's folder `behaviours`, for what a row cannot describe.
    behaviour: str = ""


def by_token(*rows: Iterable[ResourceType]) -> Mapping[str, ResourceType]:
    types: dict[str, ResourceType] = {}
    for row in (row for some in rows for row in some):
        if types.setdefault(row.token, row) is not row:
            raise ValueError(f"two rows describe {row.token}")
    return types


@cache
def resource_types_of_provider(provider: str) -> Mapping[str, ResourceType]:
    """All rows of one of Pulumi's providers, by token. Empty if no platform uses it."""
    if provider in (OWN_PROVIDER, PROVIDERS):
        module = "components.values.own_types"
    elif home := next((row.home for row in platforms().values() if row.provider and row.provider == provider), None):
        module = f"components.{home}.types"
    else:
        return {}
    found: Mapping[str, ResourceType] = import_module(module).RESOURCE_TYPES
    return found


@cache
def resource_types_of_platform(platform: str) -> Mapping[str, ResourceType]:
    """All rows that a stack on the platform can have: those of its provider, and of our own."""
    return {**resource_types_of_provider(OWN_PROVIDER), **resource_types_of_provider(platforms()[platform].provider)}


def all_resource_types() -> Mapping[str, ResourceType]:
    providers = [OWN_PROVIDER, *(row.provider for row in platforms().values() if row.provider)]
    return {token: row for provider in providers for token, row in resource_types_of_provider(provider).items()}


def find_resource_type(token: str) -> ResourceType | None:
    """None if nothing is known of the type."""
    return resource_types_of_provider(token.partition(":")[0]).get(token)


class TypesWith(Mapping[str, T]):
    """By type, what `read` finds in its row; and `others`. A type of which it finds nothing is not in it.

    Only the rows of a type's own provider are imported to look it up. Those of all providers would make the start of
    the policy pack longer: all of them are needed only to list the types.
    """

    def __init__(self, read: Callable[[ResourceType], T | None], others: Mapping[str, T] | None = None) -> None:
        self._read, self._others = read, others or {}

    def __getitem__(self, token: str) -> T:
        if token in self._others:
            return self._others[token]
        row = find_resource_type(token)
        if row and (found := self._read(row)):
            return found
        raise KeyError(token)

    def __iter__(self) -> Iterator[str]:
        rows = all_resource_types().items()
        yield from (token for token, row in rows if token not in self._others and self._read(row))
        yield from self._others

    def __len__(self) -> int:
        return sum(1 for _ in self)


def types_of_part(*parts: Part) -> TypesWith[Part]:
    return TypesWith(lambda row: row.part if row.part in parts else None)
