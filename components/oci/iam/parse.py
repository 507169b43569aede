# SPDX-License-Identifier: Apache-2.0
"""Reads policy statements, and refuses what OCI would refuse with the column and the word that was meant.

Written by hand rather than on a grammar library: importing one takes longer than this whole room does, and the errors
here know more than which tokens a grammar would accept.
"""

from components.oci.iam.conditions import read_comparison, read_condition
from components.oci.iam.errors import nearest
from components.oci.iam.permissions import known_words
from components.oci.iam.scanner import Scanner
from components.oci.iam.statement import (
    SUBJECT_KINDS,
    VERBS,
    CompartmentId,
    CompartmentName,
    Grant,
    Identified,
    Location,
    Named,
    PermissionGrant,
    Statement,
    Subject,
    SubjectKind,
    Tenancy,
    VerbGrant,
)

_OTHER_STATEMENTS = {
    "define": "gives names to other tenancies",
    "endorse": "reaches into other tenancies",
    "admit": "lets other tenancies in",
    "deny": "takes access away",
}


def _member(scanner: Scanner, kind: SubjectKind) -> Named | Identified:
    if scanner.word().lower() == "id" and kind != "service":
        scanner.take_word()
        return Identified(scanner.ocid())
    position = scanner.position
    first = scanner.name(f"the name of a {kind}")
    if scanner.accept("/"):
        second = scanner.name(f"the name of a {kind}")
        return scanner.built(position, lambda: Named(second, first))
    domain, slash, name = first.partition("/")
    return scanner.built(position, lambda: Named(name, domain) if slash else Named(first))


def _subject(scanner: Scanner) -> Subject:
    position = scanner.position
    kind = scanner.word().lower()
    if kind not in SUBJECT_KINDS:
        raise scanner.expected("who: " + ", ".join(SUBJECT_KINDS), SUBJECT_KINDS)
    scanner.take_word()
    if kind in ("any-user", "any-group"):
        return Subject(kind)
    members = [_member(scanner, kind)]
    while scanner.accept(","):
        members.append(_member(scanner, kind))
    return scanner.built(position, lambda: Subject(kind, tuple(members)))


def _permission_list(scanner: Scanner) -> PermissionGrant:
    position = scanner.position
    names: list[str] = []
    while not names or scanner.accept(","):
        if not scanner.word():
            raise scanner.expected("the name of a permission")
        names.append(scanner.take_word().upper())
    if not scanner.accept("}"):
        raise scanner.expected("`,` or `}`")
    if scanner.word().lower() in known_words():
        raise scanner.wrong(f"a list of permissions takes no resource type: leave out `{scanner.word()}`")
    return scanner.built(position, lambda: PermissionGrant(tuple(names)))


def _grant(scanner: Scanner) -> Grant:
    if scanner.accept("{"):
        return _permission_list(scanner)
    verb = scanner.word().lower()
    if verb not in VERBS:
        raise scanner.expected("a verb (inspect, read, use, manage) or {PERMISSIONS}", VERBS)
    scanner.take_word()
    position, word = scanner.position, scanner.word()
    if word.lower() in VERBS:
        following = scanner.text[position + len(word) :].split(maxsplit=1)
        meant = f": `{word} {following[0]}`" if following else ""
        raise scanner.wrong(f"two verbs, `{verb}` and `{word}`; keep the one that is meant{meant}")
    if not word:
        raise scanner.expected("a resource type")
    if word.lower() not in known_words():
        raise scanner.wrong(f"`{word}` is not a resource type{nearest(word, known_words())}")
    scanner.take_word()
    return VerbGrant(verb, word.lower())


def _location(scanner: Scanner) -> Location:
    if scanner.accept_word("tenancy"):
        return Tenancy()
    if not scanner.accept_word("compartment"):
        raise scanner.expected("`tenancy` or `compartment`", ["tenancy", "compartment"])
    if scanner.accept_word("id"):
        return CompartmentId(scanner.ocid())
    position = scanner.position
    if scanner.word().lower() == "where":
        raise scanner.expected("the name of a compartment")
    parts = scanner.name("the name of a compartment").split(":")
    while scanner.accept(":"):
        parts += scanner.name("the name of a compartment").split(":")
    return scanner.built(position, lambda: CompartmentName(tuple(parts)))


def parse(text: str) -> Statement:
    """The statement that a text says; `StatementError` if OCI would refuse it."""
    scanner = Scanner(text)
    other = _OTHER_STATEMENTS.get(scanner.word().lower())
    if other:
        raise scanner.wrong(f"`{scanner.word()}` {other}; only `Allow` statements are read here")
    scanner.demand_word("allow")
    subject = _subject(scanner)
    scanner.demand_word("to")
    grant = _grant(scanner)
    scanner.demand_word("in")
    location = _location(scanner)
    condition = read_condition(scanner, read_comparison) if scanner.accept_word("where") else None
    if not scanner.at_end():
        raise scanner.expected("the end" if condition else "`where` or the end", [] if condition else ["where"])
    return Statement(subject, grant, location, condition)
