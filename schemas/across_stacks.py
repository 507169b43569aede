# SPDX-License-Identifier: Apache-2.0
"""Checks of several stacks together: whether they make the same resources, share addresses, or use missing outputs."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.findings import Finding, Wrong, at
from schemas.findings import Path as FindingPath
from schemas.judge import OF_SEVERAL, Judged
from schemas.load import load_file, region_key, stack_name
from schemas.model import Stack, Uses
from schemas.name_suggestions import quoted_list
from schemas.source import MAXIMUM_BYTES

# The other stack may be in another folder. Only a name that is nearly a neighbour's is a likely typing mistake.
_SLIP = 0.9
_FILES = "Pulumi.*.yaml"
_PROJECT = re.compile(r"^name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
PROJECT = "trainyard"

# Texts that a relevant file must all contain.
_Hint = tuple[str, ...]
_Subnets = dict[str, list[tuple[ipaddress.IPv4Network, Judged]]]


@dataclass(frozen=True, slots=True)
class StackFolder:
    """A stack's folder: the stacks that were loaded, the name of the project, and the names of all its stacks."""

    stacks: Mapping[str, Stack]
    project: str
    names: Sequence[str]


def check_uses(stack: Stack, uses: Uses, beside: StackFolder) -> Iterator[tuple[str, Wrong]]:
    """Codes and findings about `uses`, as far as the stacks of this folder show problems."""
    _, project, name = ("", "", *uses.stack.split("/"))[-3:]
    if project != beside.project or name == stack.name:
        return
    if name not in beside.names:
        from difflib import get_close_matches  # a lazy import, because most files do not need it

        for close in get_close_matches(name, set(beside.names) - {stack.name}, n=1, cutoff=_SLIP):
            message = f"no stack in this folder is called `{name}`, but one is called `{close}`"
            remedy = f"did you mean `{close}`? If the stack is kept elsewhere, leave it"
            yield "TY719", Wrong(at("uses", "stack"), message, remedy)
    elif owner := beside.stacks.get(name):
        yield from _place_mismatch(stack, owner)
        if "logs" in uses.take and not owner.logs.enabled:
            message = f"takes the logs of `{owner.name}`, which has none (`trainyard:logs: {{ enabled: false }}`)"
            path = at("uses", "take", uses.take.index("logs"))
            yield "TY717", Wrong(path, message, "remove `logs` here, or enable them there")
        # A stack can come up only after the one from which it takes. In a circle, none can come up first.
        way, here = [stack.name], stack
        while here.uses and (name := here.uses.stack.rpartition("/")[2]) in beside.stacks:
            way.append(name)
            if name == stack.name:
                remedy = "let one of them make its own instead of taking it"
                yield "TY718", Wrong(at("uses", "stack"), f"these take from one another: {quoted_list(way)}", remedy)
            if way.count(name) > 1:
                return
            here = beside.stacks[name]


def _place_mismatch(stack: Stack, owner: Stack) -> Iterator[tuple[str, Wrong]]:
    region = ("config", region_key(stack.platform))
    places = [
        (at("platform"), "on the platform", "trainyard:platform", stack.platform, owner.platform),
        (region, "in the region", region[-1], stack.region, owner.region),
    ]
    for ours_at, theirs_at in zip(stack.place(), owner.place(), strict=False):
        key = ours_at.key
        places.append((at(key), ours_at.words, f"trainyard:{key}", ours_at.value or "", theirs_at.value or ""))
    for path, where, key, ours, theirs in places:
        if ours and theirs and ours != theirs:
            message = f"this stack takes from `{owner.name}`, which is {where} `{theirs}`, not `{ours}`"
            yield "TY716", Wrong(path, message, f"write `{key}: {theirs}`, or use a stack of `{ours}`")
            # On another platform, nothing else can be compared.
            return


def takes_network_beside(stack: Stack, folder: Path) -> bool:
    """Whether a stack takes the network that another stack of the project makes, whose file is in the same folder."""
    names, seen = stack_names_in(folder), {stack.name}
    while stack.uses and "network" in stack.uses.take:
        _, project, name = ("", "", *stack.uses.stack.split("/"))[-3:]
        if project != project_of(folder) or name not in names or name in seen:
            return False
        owner = load_file(folder / f"Pulumi.{name}.yaml").stack
        if owner is None:
            return False
        seen.add(name)
        stack = owner
    return len(seen) > 1 and stack.makes("network")


def find_neighbours(files: Sequence[Path], judged: Sequence[Judged]) -> list[Judged]:
    """Stacks in the same folders that may clash with the checked ones, or that these use. Invalid files are left
    out."""
    near: list[Judged] = []
    for folder in dict.fromkeys(file.parent for file in files if file.match(_FILES)):
        checked = {file.name: result.stack for file, result in zip(files, judged, strict=True) if file.parent == folder}
        if stacks := list(filter(None, checked.values())):
            others = [file for file in sorted(folder.glob(_FILES)) if file.name not in checked]
            texts = {file: text for file in others if (text := _text_or_empty(file))}
            near += _used_stacks(stacks, texts)
            # The stacks whose files contain the name of a resource that one of these makes.
            hints = {hint for stack in stacks for hint in _resource_name_hints(stack)}
            alike = [file for file, text in texts.items() if any(all(word in text for word in hint) for hint in hints)]
            near += filter(None, [_load_neighbour(file, texts) for file in alike])
    return near


def stack_names_in(folder: Path) -> list[str]:
    """The names of the stacks in a folder."""
    return sorted(map(stack_name, folder.glob(_FILES)))


def project_of(folder: Path) -> str:
    """The project's name from Pulumi.yaml, which is in the folder of the stack files or in its parent."""
    for file in (folder / "Pulumi.yaml", folder.parent / "Pulumi.yaml"):
        if project_line := _PROJECT.search(_text_or_empty(file)):
            return project_line[1]
    return PROJECT


def _used_stacks(stacks: Sequence[Stack], texts: dict[Path, str]) -> Iterator[Judged]:
    """The stacks that these use, directly or through others."""
    files = {stack_name(file): file for file in texts}
    used_stacks = [stack.uses.stack for stack in stacks if stack.uses]
    for name in used_stacks:
        file = files.get(name.rpartition("/")[2])
        if file in texts and (judged := _load_neighbour(file, texts)):
            yield judged
            used_stacks += [judged.stack.uses.stack] if judged.stack and judged.stack.uses else []


def _resource_name_hints(stack: Stack) -> Iterator[_Hint]:
    """A file contains a name itself, or the team and the environment that make it up."""
    bucket, repository = stack.bucket.name or "", stack.registry.repository or ""
    yield from ((name,) for name in (bucket, repository, stack.network.inside) if name)
    names = f"{stack.team}-{stack.environment}"
    yield from ((f"{names}-training",), (f"{stack.team}/{stack.environment}/training",))
    for text, mark in (
        (names, "-"),
        (bucket.removesuffix("-training"), "-"),
        (repository.removesuffix("/training"), "/"),
    ):
        parts = text.split(mark)
        yield from ((mark.join(parts[:end]), mark.join(parts[end:])) for end in range(1, len(parts)))


def _load_neighbour(file: Path, texts: dict[Path, str]) -> Judged | None:
    """Loads a file, and removes it from the texts, so that it is loaded only once."""
    del texts[file]
    loaded = load_file(file)
    return Judged(loaded.stack, None, (), loaded.source, loaded.folder) if loaded.stack else None


def _text_or_empty(file: Path) -> str:
    """The file's text. Empty if it cannot be read: a neighbour must not make a check fail."""
    try:
        return file.read_text("utf-8") if file.is_file() and file.stat().st_size <= MAXIMUM_BYTES else ""
    except (OSError, ValueError):
        return ""


@dataclass(frozen=True, slots=True)
class _UniqueResource:
    """A resource that can exist only once: `where` it would be, and words for it."""

    where: tuple[str | None, ...]
    what: str
    path: FindingPath
    remedy: str


def check_together(judged: Sequence[Judged], neighbours: Sequence[Judged] = ()) -> list[Judged]:
    """Adds the findings that need all stacks. Neighbours are read, but get no findings of their own."""
    first: dict[_UniqueResource, Judged] = {}
    subnets: _Subnets = {}
    folders: dict[Path, dict[str, Stack]] = defaultdict(dict)
    for result in (*neighbours, *judged):
        if result.stack:
            folders[result.folder][result.stack.name] = result.stack
    for result in neighbours:
        _clash_findings(result, first, subnets)
    checked = []
    for result in judged:
        new = _clash_findings(result, first, subnets)
        if result.stack and result.stack.uses:
            beside = StackFolder(folders[result.folder], project_of(result.folder), stack_names_in(result.folder))
            wrongs = check_uses(result.stack, result.stack.uses, beside)
            new += [_finding_at(result, code, *wrong) for code, wrong in wrongs]
        findings = sorted((*result.findings, *new), key=lambda finding: (finding.line, finding.column, finding.code))
        checked.append(replace(result, findings=tuple(findings)) if new else result)
    return checked


def _clash_findings(judged: Judged, first: dict[_UniqueResource, Judged], subnets: _Subnets) -> list[Finding]:
    if judged.stack is None:
        return []
    by_place: dict[FindingPath, Finding] = {}
    # If several resources clash for the same reason, the finding about the first is enough.
    for resource in reversed(list(_unique_resources(judged.stack))):
        other = first.setdefault(replace(resource, path=(), remedy=""), judged)
        if _is_another(other, judged):
            message = f"makes {resource.what}, which {other.source.file} makes too"
            by_place[resource.path] = _finding_at(judged, "TY615", resource.path, message, resource.remedy)
    return [*by_place.values(), *_subnet_overlaps(judged, judged.stack, subnets)]


def _is_another(first: Judged, second: Judged) -> bool:
    """Whether these are two stacks. False for two versions of one stack's file, from two checkouts, and for a file that
    is named twice."""
    return first.stack is not None and second.stack is not None and first.stack.name != second.stack.name


def _unique_resources(stack: Stack) -> Iterator[_UniqueResource]:
    for where, what, concern, other in stack.named_alike():
        remedy = other or f"choose another team or environment, or take {concern} from that stack (`uses`)"
        yield _UniqueResource(where, what, at("environment"), remedy)
    here = (stack.platform, stack.account, stack.region)
    if stack.makes("bucket"):
        name = stack.bucket_name
        remedy = f"choose another name, or `bucket: {{ existing: {name} }}` in one of them"
        yield _UniqueResource(
            (stack.platform, *stack.bucket_scope), f"the bucket `{name}`", at("bucket", "name"), remedy
        )
    if stack.makes("registry"):
        name = stack.repository_name
        remedy = f"choose another name, or `registry: {{ existing: {name} }}` in one of them"
        yield _UniqueResource(here, f"the repository `{name}`", at("registry", "repository"), remedy)


def _subnet_overlaps(judged: Judged, stack: Stack, subnets: _Subnets) -> Iterator[Finding]:
    network = stack.network
    if network.inside is None or network.subnet_cidr is None or not stack.makes("network"):
        return
    try:
        block = ipaddress.IPv4Network(network.subnet_cidr)
    except ValueError:
        return
    others = subnets.setdefault(network.inside, [])
    taken = next((other for other in others if block.overlaps(other[0]) and _is_another(other[1], judged)), None)
    if taken:
        message = f"{block} overlaps {taken[0]}, which {taken[1].source.file} uses in the same network"
        remedy = "choose a free part of that network's addresses"
        yield _finding_at(judged, "TY114", at("network", "subnetCidr"), message, remedy)
    others.append((block, judged))


def _finding_at(judged: Judged, code: str, path: FindingPath, message: str, remedy: str) -> Finding:
    line, column = judged.source.position(path)
    return Finding(code, path, message, remedy, OF_SEVERAL[code][1], judged.source.file, line, column)
