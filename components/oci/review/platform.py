# SPDX-License-Identifier: Apache-2.0
"""Implements `ReviewPlatform` (components/platform/review.py) for OCI."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from catalog.machines import COMPUTE_TARGET, Price, accelerators_of, price_of, price_with_block_storage
from catalog.tables import table
from components.oci.iam.permissions import resource_types, type_of, verb_covers
from components.oci.iam.statement import VERBS
from components.oci.review import access
from components.oci.review.abilities import evaluate_abilities
from components.oci.review.access import REST, is_stand_in
from components.oci.review.conditions import MEMBER
from components.oci.review.network import network_of_side
from components.oci.stack import MachineShare
from components.platform.circumstances import merged_circumstances, split_circumstances
from components.platform.review import Ability, Costs, Machines, Network, ReviewPlatform, Snapshot, Standing
from schemas.name_suggestions import and_list, count_noun


def costs_of_side(side: Snapshot, prices: Mapping[str, Any]) -> Costs:
    """The costs per hour of jobs and compute targets, by the prices of shapes or the team's own."""
    targets: Mapping[str, Any] = side.plan.get("computeTargets") or {}
    jobs = {name: _machines_of_job(job, targets, prices) for name, job in (side.plan.get("jobs") or {}).items()}
    standing = []
    for key, target in targets.items():
        if shape := target.get("shape"):
            number, price = int(target.get("instances") or 0), _price_of_shape(shape, prices)
            what = f"compute target {key}: {count_noun(number, 'machine')} of {shape['name']}"
            standing.append(Standing(what, price.of(number), price.source))
    return Costs(jobs, tuple(standing))


def _machines_of_job(job: Mapping[str, Any], targets: Mapping[str, Any], prices: Mapping[str, Any]) -> Machines:
    nodes = sum(int(role["replicas"]) for role in job["roles"])
    if target := job.get("computeTarget"):
        # Machines of a target cost money while it exists, whether a job runs or not, so they are standing costs. The
        # price of an existing target, which the stack did not make, is not known.
        made = bool((targets.get(target) or {}).get("shape"))
        price = Price(0.0, "its machines are paid for as they stand") if made else price_of(COMPUTE_TARGET, prices)
        # The plan's share of a machine, in JSON a list.
        gpus = int(MachineShare(*job["share"]).gpus)
        return Machines(f"compute target {target}", nodes, gpus, *price, stays=True)
    name = str(job["shape"]["name"])
    price = price_with_block_storage(_price_of_shape(job["shape"], prices), job.get("blockStorageGb") or 0, prices)
    return Machines(name, nodes, accelerators_of(name), *price)


def _price_of_shape(shape: Mapping[str, Any], prices: Mapping[str, Any]) -> Price:
    return price_of(str(shape["name"]), prices, shape.get("ocpus"), shape.get("memoryGb"))


READ = "READ"
# The limit of named kinds. Further ones are only counted.
_MOST = 6
_FEW = 3
_PLACE = " in "
_ROOT, _ELSEWHERE, _OWN = "the tenancy itself", "any other compartment", "the stack's compartment"
_ABBREVIATIONS = {"vcns": "VCNs", "vnics": "VNICs", "vlans": "VLANs", "repos": "repositories", "dhcp": "DHCP"}


def operation_words(operations: frozenset[str]) -> str:
    if operations == {MEMBER}:
        return "join"
    if operations == {READ}:
        return "do what cannot be read here"
    by_type: dict[str, set[str]] = defaultdict(set)
    others: list[str] = []
    for name in sorted(operations):
        stand_in = is_stand_in(name)
        kind = stand_in[1] if stand_in else type_of(name)
        if kind:
            by_type[kind].add(stand_in[0] if stand_in else name)
        elif name not in (MEMBER, READ):
            others.append(name)
    if REST in by_type and "manage" in by_type[REST]:
        return "manage everything"
    verbs_of = {_noun_of_kind(kind): _verbs_of_kind(kind, names) for kind, names in by_type.items()}
    nouns: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for noun, verbs in sorted(verbs_of.items()):
        nouns[verbs].append(noun)
    parts = [_verbs_and_nouns(verbs, _listing_text(names, " and ")) for verbs, names in nouns.items()]
    return _listing_text([*parts, *others])


def _verbs_and_nouns(verbs: tuple[str, ...], nouns: str) -> str:
    """Verbs of several words follow in parentheses: `read private ips (assign public ip)`."""
    known = (*table("oci_review")["verbs"].values(), "manage")
    plain = tuple(verb for verb in verbs if " " not in verb or verb in known)
    others = [verb for verb in verbs if verb not in plain]
    shown = f"{and_list(plain)} {nouns}" if plain else f"change {nouns}"
    more = f" and {len(others) - _FEW} more" if len(others) > _FEW else ""
    return f"{shown} ({', '.join(others[:_FEW])}{more})" if others else shown


def _listing_text(parts: list[str], last: str = "; ") -> str:
    if len(parts) > _MOST:
        return f"{', '.join(parts[:_MOST])} and {len(parts) - _MOST} more"
    return f"{', '.join(parts[:-1])}{last}{parts[-1]}" if len(parts) > 1 and last != "; " else last.join(parts)


def _verbs_of_kind(kind: str, names: set[str]) -> tuple[str, ...]:
    """`manage` if all permissions of the kind are granted, otherwise the verb of each."""
    if kind not in resource_types():
        return (max(names, key=lambda verb: VERBS.index(verb) if verb in VERBS else -1),)
    if len(names) > 1 and names >= verb_covers("manage", kind):
        return ("manage",)
    words = table("oci_review")["verbs"]
    found = {_verb_of_permission(kind, name, words) for name in names}
    known = list(words.values())
    return tuple(sorted(found, key=lambda verb: (known.index(verb) if verb in known else len(known), verb)))


def _verb_of_permission(kind: str, name: str, words: Mapping[str, str]) -> str:
    """The verb of a permission: `create` for `DATA_SCIENCE_JOB_CREATE`. The prefix that most permissions of the kind
    share is left out."""
    starts = Counter(
        one[: at + 1] for one in verb_covers("manage", kind) for at, letter in enumerate(one) if letter == "_"
    )
    half = sum(starts.values()) and len(verb_covers("manage", kind)) / 2
    start = max((one for one, times in starts.items() if times >= half), key=len, default="")
    rest = name.removeprefix(start)
    return words.get(rest, rest.lower().replace("_", " "))


def _noun_of_kind(kind: str) -> str:
    if kind == REST:
        return "whatever else there is"
    words = kind.removeprefix("data-science-").split("-")
    return " ".join(_ABBREVIATIONS.get(word, word) for word in words)


def resource_words(resources: frozenset[str]) -> str:
    """Resources in words. Each is named once, with all its places and circumstances."""
    where: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for resource in resources:
        named, circumstances = split_circumstances(resource)
        what, in_place, place = named.rpartition(_PLACE)
        where[what if in_place else ""].add((place if in_place else named, circumstances))
    alike: dict[frozenset[tuple[str, str]], list[str]] = defaultdict(list)
    for what, places in where.items():
        alike[frozenset(places)].append(what)
    return ", ".join(sorted(_at_places(names, places) for places, names in alike.items()))


def _at_places(names: Iterable[str], places: frozenset[tuple[str, str]]) -> str:
    at: dict[frozenset[str], list[str]] = defaultdict(list)
    by_place: dict[str, set[str]] = defaultdict(set)
    for place, circumstances in places:
        by_place[place].add(circumstances)
    for place, found in by_place.items():
        at[frozenset(found)].append(place)
    shown = ", ".join(sorted(f"{_places_text(where)}{merged_circumstances(found)}" for found, where in at.items()))
    things = " and ".join(_resource_names(sorted(filter(None, names))))
    return f"{things}{_PLACE}{shown}" if things else shown


def _places_text(names: Iterable[str]) -> str:
    found = set(names)
    if {_ROOT, _ELSEWHERE} <= found:
        return "the whole tenancy" if _OWN in found else "the rest of the tenancy"
    return " and ".join(sorted(found, key=lambda name: (name != _OWN, name)))


def _resource_names(names: list[str]) -> Iterator[str]:
    """Names of resources in words: `any bucket` if named buckets, all others and requests without a name are
    included."""
    for kind in sorted(name.rpartition(" ")[2] for name in names if name.startswith("any other ")):
        if f"no certain {kind}" in names:
            named = [name for name in names if name.startswith(f"{kind} ")]
            included = {*named, f"no certain {kind}", f"any other {kind}"}
            names = [name for name in names if name not in included] + [f"any {kind}" if named else f"any other {kind}"]
    yield from names


class OciReview(ReviewPlatform):
    def network(self, side: Snapshot) -> Network:
        return network_of_side(side)

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        return evaluate_abilities(sides)

    def statements(self, side: Snapshot) -> tuple[str, ...]:
        return access.canonical_statements(side)

    def without_statements(self, side: Snapshot, texts: frozenset[str]) -> Snapshot:
        return access.side_without_statements(side, texts)

    def operation_words(self, operations: frozenset[str]) -> str:
        return operation_words(operations)

    def resource_words(self, resources: frozenset[str]) -> str:
        return resource_words(resources)

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        return costs_of_side(side, prices)


REVIEW = OciReview()
