# SPDX-License-Identifier: Apache-2.0
"""Policy rules, for single resources and for whole stacks, and their verdicts.

Each file of policies/rules declares one rule, called `RULE`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    outcome: Literal["pass", "fail", "unknown"]
    because: str = ""


PASS = PolicyVerdict("pass")


def fail_because(because: str) -> PolicyVerdict:
    return PolicyVerdict("fail", because)


def unknown_because(because: str) -> PolicyVerdict:
    return PolicyVerdict("unknown", because)


NOT_YET = "is not known yet"


class NotKnownError(Exception):
    """A rule used a value that exists only after other resources are created, or that cannot be read here."""

    def __init__(self, path: str, why: str = NOT_YET) -> None:
        super().__init__(path)
        self.path, self.why = path, why


class Unknown:
    """A value that a preview does not know. Using it in any way ends the rule, so that no rule passes by accident."""

    def __init__(self, path: str = "value", why: str = NOT_YET) -> None:
        self._path, self._why = path, why

    def _refuse(self, *_: object) -> NoReturn:
        raise NotKnownError(self._path, self._why)

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __getattr__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __int__ = __float__ = _refuse

    def __repr__(self) -> str:
        return f"Unknown({self._path!r})"


def attempt_verdict(judge: Callable[[T], PolicyVerdict], value: T) -> PolicyVerdict:
    try:
        return judge(value)
    except NotKnownError as missing:
        return unknown_because(f"`{missing.path}` {missing.why}")


def verdict_on_every(judge: Callable[[Any], PolicyVerdict], items: Iterable[Any]) -> PolicyVerdict:
    """One verdict on many items: fail if any fails, else unknown if any is unknown, else pass."""
    verdicts = [attempt_verdict(judge, item) for item in items]
    for outcome in ("fail", "unknown"):
        reasons = dict.fromkeys(verdict.because for verdict in verdicts if verdict.outcome == outcome)
        if reasons:
            return PolicyVerdict(outcome, "; ".join(reasons))
    return PASS


def verdict_of_either(*verdicts: Callable[[], PolicyVerdict]) -> PolicyVerdict:
    """One pass is enough. Without one, an unknown decides, because it may turn out to be a pass."""
    each = [attempt_verdict(lambda verdict: verdict(), verdict) for verdict in verdicts]
    by_outcome = {verdict.outcome: verdict for verdict in reversed(each)}
    return by_outcome.get("pass") or by_outcome.get("unknown") or by_outcome["fail"]


RULES = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class JudgedResource:
    """A resource before the engine makes it: its type and inputs, under the names of Pulumi's providers."""

    type: str
    properties: Mapping[str, Any]
    name: str = ""
    urn: str = ""
    protect: bool = False
    # It only contains other resources.
    is_component: bool = False

    @property
    def tags(self) -> Mapping[str, Any]:
        """The freeform tags of an OCI resource; other resources call them tags."""
        tags: Mapping[str, Any] = self.properties.get("freeformTags") or self.properties.get("tags") or {}
        return tags


Level = Literal["mandatory", "advisory"]
Examples = Mapping[str, JudgedResource]
Judge = Callable[[JudgedResource], PolicyVerdict]


def by_type(rows: Mapping[str, Judge]) -> Judge:
    """The judge of a rule for several types of resources: one row for each type."""
    return lambda resource: rows[resource.type](resource)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A mandatory rule stops the deployment, an advisory one only remarks. Its examples are its tests."""

    id: str
    level: Level
    asks: str
    remedy: str
    types: Collection[str]
    judge: Judge
    passes: Examples
    fails: Examples
    unknown: Examples = field(default_factory=dict)

    def verdict(self, resource: JudgedResource) -> PolicyVerdict:
        """The rule's verdict on a resource of one of its types."""
        return attempt_verdict(self.judge, resource)


@dataclass(frozen=True, slots=True)
class JudgedStack:
    """All resources of a stack. `settings`: the rule's own part of the pack's configuration. `access_mode`: the mode of
    the stack's access, which may attach policies of AWS."""

    resources: tuple[JudgedResource, ...]
    environment: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    access_mode: str = ""

    def of(self, *types: str) -> tuple[JudgedResource, ...]:
        return self.of_types(types)

    def of_types(self, types: Collection[str]) -> tuple[JudgedResource, ...]:
        # Of thousands of resources, each type is looked up once.
        wanted = {kind for kind in {resource.type for resource in self.resources} if kind in types}
        return tuple(resource for resource in self.resources if resource.type in wanted)


# What is judged of a stack: one of its resources, or None for the stack as a whole.
StackVerdict = tuple[JudgedResource | None, PolicyVerdict]
JudgeStack = Callable[[JudgedStack], Iterable[StackVerdict]]


@dataclass(frozen=True, slots=True)
class StackRule:
    """A rule whose judge needs all resources of a stack.

    `settings`: what the configuration of a pack may set of it, as properties of a JSON Schema.
    """

    id: str
    level: Level
    asks: str
    remedy: str
    types: Collection[str]
    judge: JudgeStack
    passes: Mapping[str, JudgedStack]
    fails: Mapping[str, JudgedStack]
    unknown: Mapping[str, JudgedStack]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def verdicts(self, stack: JudgedStack) -> tuple[StackVerdict, ...]:
        """All verdicts but passes. If the whole rule needs a value that is unknown, there is one verdict: unknown."""
        try:
            found = tuple(self.judge(stack))
        except NotKnownError as missing:
            return ((None, unknown_because(f"`{missing.path}` {missing.why}")),)
        return tuple((judged, verdict) for judged, verdict in found if verdict.outcome != "pass")


def verdicts_on_each(judge: Judge, resources: Iterable[JudgedResource]) -> Iterator[StackVerdict]:
    """A verdict on each of these resources of a stack."""
    return ((resource, attempt_verdict(judge, resource)) for resource in resources)


def is_tagged(resource: JudgedResource, tag: str, value: str) -> bool:
    """Whether a tag is known to have this value. An unknown tag is no reason to open something."""
    try:
        return bool(resource.tags.get(tag) == value)
    except NotKnownError:
        return False


@cache
def all_rules() -> tuple[PolicyRule | StackRule, ...]:
    """All rules, sorted by file name. A new file is a new rule."""
    names = sorted(path.stem for path in RULES.glob("*.py") if path.stem != "__init__")
    return tuple(import_module(f"policies.rules.{name}").RULE for name in names)


@cache
def resource_rules() -> tuple[PolicyRule, ...]:
    """The rules that judge one resource at a time."""
    return tuple(rule for rule in all_rules() if isinstance(rule, PolicyRule))


@cache
def stack_rules() -> tuple[StackRule, ...]:
    """The rules that judge a whole stack."""
    return tuple(rule for rule in all_rules() if isinstance(rule, StackRule))


def refusing_rules(resource: JudgedResource) -> frozenset[str]:
    """The ids of the mandatory rules that refuse a resource."""
    concerned = (rule for rule in resource_rules() if resource.type in rule.types and rule.level == "mandatory")
    return frozenset(rule.id for rule in concerned if rule.verdict(resource).outcome == "fail")


@dataclass(frozen=True, slots=True)
class RequiredValue:
    """A value that a property must have. `path`: the property, such as `versioningConfiguration.status`. `wanted`: the
    value, or a predicate.

    The examples are values by title. None: the property is not set.
    """

    path: str
    wanted: Any
    passes: Mapping[str, Any]
    fails: Mapping[str, Any]

    def holds(self, value: Any) -> bool:
        return bool(self.wanted(value) if callable(self.wanted) else value == self.wanted)

    def read(self, resource: JudgedResource) -> Any:
        value: Any = resource.properties
        for key in self.path.split("."):
            value = (value or {}).get(key)
        return value

    def example(self, kind: str, value: Any) -> JudgedResource:
        """A resource with this value and nothing else."""
        *above, last = self.path.split(".")
        properties = {} if value is None else {last: value}
        for key in reversed(above):
            properties = {key: properties}
        return JudgedResource(kind, properties)


def judge_value(value: RequiredValue, because: str) -> Judge:
    """The judge of one comparison, for rules that have other rows too."""

    def judge(resource: JudgedResource) -> PolicyVerdict:
        return PASS if value.holds(value.read(resource)) else fail_because(because)

    return judge


def value_rule(
    id: str,  # noqa: A002  # the columns of PolicyRule
    level: Level,
    asks: str,
    remedy: str,
    because: str,
    where: Mapping[str, RequiredValue],
) -> PolicyRule:
    """A rule that is one comparison. `where`: the property by type. `because`: the reason of a failure."""
    made = [(kind, value) for kind, value in where.items()]
    return PolicyRule(
        id=id,
        level=level,
        asks=asks,
        remedy=remedy,
        types=tuple(where),
        judge=by_type({kind: judge_value(value, because) for kind, value in made}),
        passes={name: one.example(kind, value) for kind, one in made for name, value in one.passes.items()},
        fails={name: one.example(kind, value) for kind, one in made for name, value in one.fails.items()},
        unknown={f"`{one.path}` decided elsewhere": one.example(kind, Unknown(one.path)) for kind, one in made},
    )
