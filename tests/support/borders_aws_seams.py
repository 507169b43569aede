# SPDX-License-Identifier: Apache-2.0
"""Requests to AWS that two parsers could understand differently. Each is made from a request that its sender may
make."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from urllib.parse import quote

from tests.support.aws_inside import HOST, REGION, Sender, linked

ACCOUNT = "123456789012"
CODE = ".trainyard/code/x.tar.gz"


@dataclass(frozen=True)
class Drawn:
    """One request. `link`: the target of a request that the deployer has presigned for the user. `session`: the user
    signs with a session of the role `small`."""

    seam: str
    service: str
    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    region: str = REGION
    link: bool = False
    session: bool = False


@dataclass
class Stage:
    """The resources that requests name: the security groups and route tables `mine` and `theirs`, the user's endpoint,
    and the deployer's upload of the code."""

    deployer: Sender
    groups: dict[str, str] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""
    upload: str = ""


_TYPES = (
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=B", "Multipart/Form-Data; boundary=B",
    " multipart/form-data;boundary=B", "multipart/form-data; charset=utf-8; boundary=\"B\"", "text/plain", "",
    "application/x-www-form-urlencoded; charset=utf-16", "APPLICATION/X-WWW-FORM-URLENCODED", "application/json",
    "application/x-amz-json-1.1", "application/x-url-encoded", "multipart/mixed; boundary=B", "application/xml",
)  # fmt: skip
FORM = _TYPES[0]


def _pairs(pairs: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs.items())


def _parts(pairs: Mapping[str, str]) -> str:
    return "".join(
        f'\r\n--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in pairs.items()
    ) + "\r\n--B--\r\n"  # fmt: skip


def _query_calls(stage: Stage, random: Random) -> tuple[str, dict[str, str], str, str]:
    """A call that the user may make, and a parameter with which the user may not make it."""
    roles = [f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("small", "boss")]
    groups = stage.groups
    rows: list[tuple[str, dict[str, str], str, str]] = [
        ("iam", {"Action": "CreateAccessKey", "Version": "2010-05-08", "UserName": "user"}, "UserName", "deployer"),
        ("sts", {"Action": "AssumeRole", "Version": "2011-06-15", "RoleSessionName": "me", "RoleArn": roles[0]},
         "RoleArn", roles[1]),
        ("ec2", {"Action": "DeleteSecurityGroup", "Version": "2016-11-15", "GroupId": groups["mine"]},
         "GroupId", groups["theirs"]),
        ("ec2", {"Action": "CreateTags", "Version": "2016-11-15", "ResourceId.1": groups["mine"], "Tag.1.Key": "a",
                 "Tag.1.Value": "b"}, "ResourceId.1", groups["theirs"]),
        ("iam", {"Action": "CreateAccessKey", "Version": "2010-05-08", "UserName": "user"}, "Action",
         "CreateLoginProfile"),
    ]  # fmt: skip
    return random.choice(rows)


def _two_forms(stage: Stage, random: Random) -> Drawn:
    service, own, name, value = _query_calls(stage, random)
    other = {**own, name: value}
    outer, inner = random.choice([(own, other), (other, own)])
    body = f"{_pairs(outer)}&z={_parts(inner)}".encode()
    return Drawn("two forms", service, "POST", "/", {"content-type": random.choice(_TYPES)}, body)


_NAMES: tuple[Callable[[str], str], ...] = (
    str.lower, str.upper, lambda name: f"%{ord(name[0]):x}{name[1:]}", lambda name: f"{name}%00",
    lambda name: f"+{name}",
    lambda name: f"%c1%{ord(name[0]) + 0x40:x}{name[1:]}", lambda name: f"{name}.1", lambda name: f"{name}.member.1",
    lambda name: f"{name}[]", lambda name: name, lambda name: f"{name}.0", lambda name: f"\ufeff{name}",
    lambda name: f"Params.{name}",
)  # fmt: skip


def _two_names(stage: Stage, random: Random) -> Drawn:
    service, own, name, value = _query_calls(stage, random)
    more = f"{random.choice(_NAMES)(name)}={quote(value, safe='')}"
    first, second = random.choice([(_pairs(own), more), (more, _pairs(own))])
    text = random.choice(["&", ";", "&&", "&;", "\r\n", "?"]).join((first, second))
    encoding = random.choice(["utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig"])
    return Drawn("two names", service, "POST", "/", {"content-type": random.choice((FORM, random.choice(_TYPES)))},
                 text.encode(encoding))  # fmt: skip


def _two_places(stage: Stage, random: Random) -> Drawn:
    service, own, name, value = _query_calls(stage, random)
    body, query, headers = _pairs(own), "", {"content-type": random.choice((FORM, random.choice(_TYPES)))}
    place = random.choice(["query", "header", "json", "target", "both", "xml"])
    if place == "query":
        query = f"?{_pairs({name: value})}"
    elif place == "both":
        query, body = f"?{_pairs({**own, name: value})}", random.choice([body, ""])
    elif place == "header":
        headers |= {name.lower(): value, f"x-{name.lower()}": value}
    elif place == "json":
        body = json.dumps({**own, name: value}) if random.random() < 0.5 else f"{body}&{json.dumps({name: value})}"
    elif place == "xml":
        body = f"{body}&<{name}>{value}</{name}>"
    else:
        headers["x-amz-target"] = f"X.{value}"
    method = random.choice(["POST", "POST", "POST", "GET", "PUT"])
    return Drawn("two places", service, method, f"/{query}", headers, body.encode())


_LIST_TAGS = (
    "TagSpecification.{n}.ResourceType=vpc&TagSpecification.{n}.Tag.{m}.{key}=stack"
    "&TagSpecification.{n}.Tag.{m}.Value=mine"
)


def _tags(stage: Stage, random: Random) -> Drawn:
    numbers = ["1"] * 4 + ["2", "0", "01", "\u0661", "+1", "1.1", "9", ""]
    spelled = _LIST_TAGS.format(
        n=random.choice(numbers), m=random.choice(numbers), key=random.choice(["Key", "key", "X.Key"])
    )
    if random.random() < 0.5:
        again = [f"TagSpecification.1.Tag.{number}.Key=stack&TagSpecification.1.Tag.{number}.Value={value}"
                 for number, value in zip(random.sample("123", 2), ("mine", "theirs"), strict=True)]  # fmt: skip
        random.shuffle(again)
        spelled = "&".join(("TagSpecification.1.ResourceType=vpc", *again))
    region = random.choice([REGION, REGION, "eu-west-1", "eu-west-1,x", f"{REGION};eu-west-1", "*"])
    body = f"Action=CreateVpc&Version=2016-11-15&CidrBlock=10.1.0.0/16&{spelled}".encode()
    return Drawn("tags", "ec2", "POST", "/", {"content-type": FORM}, body, region)


_JSON_NAMES = ('"Name"', '"name"', '"N\\u0061me"', '"NAME"', '"Name "', '"\\u0000Name"', '"Names"', '"Name\\u0000"')
_JSON_VALUES = ('"theirs"', '["theirs"]', '{"Name": "theirs"}', '"/theirs"', '"theirs:1"', 'null', '"t\\u0068eirs"',
                f'"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/theirs"', '"mine"')  # fmt: skip


def _json(stage: Stage, random: Random) -> Drawn:
    operation = random.choice(["GetParameter", "DeleteParameter", "PutParameter"])
    pairs = ['"Name": "mine"', f"{random.choice(_JSON_NAMES)}: {random.choice(_JSON_VALUES)}",
             '"Value": "&Action=DeleteParameter&Name=theirs&"', '"Overwrite": true']  # fmt: skip
    chosen = pairs[random.randrange(2) : 4]
    random.shuffle(chosen)
    body = f"{{{', '.join(chosen)}}}".encode(random.choice(["utf-8"] * 6 + ["utf-16", "utf-32", "utf-8-sig", "utf-7"]))
    headers = {
        "content-type": random.choice(["application/x-amz-json-1.1"] * 3 + list(_TYPES)),
        "x-amz-target": random.choice(["AmazonSSM."] * 4 + ["", "X.", "AmazonSSM.DeleteParameter."]) + operation,
    }
    query = random.choice(
        ["", "", "", "?Action=DeleteParameter&Name=theirs", "?X-Amz-Signature=&Name=theirs", "?Name=theirs"]
    )
    return Drawn("JSON", "ssm", "POST", f"/{query}", headers, body)


_KEYS = (
    "<Key>mine/a</Key><b:Key xmlns:b='u'>secret/q.json</b:Key>",
    "<Key>secret/q.json</Key><b:Key xmlns:b='u'>mine/a</b:Key>",
    "<b:Key xmlns:b='u'>mine/a</b:Key><Key>secret/q.json</Key>", "<Key>mine/a</Key><Key>secret/q.json</Key>",
    "<Key>secret/q.json</Key><Key>mine/a</Key>", "<key>mine/a</key><Key>secret/q.json</Key>",
    "<Key>secret/q.json</Key><key>mine/a</key>", "<Key>mine/a<!-- --></Key>", "<Key><![CDATA[mine/a]]></Key>",
    "<Key>mine/a</Key><VersionId/>", "<Key>mine/../secret/q.json</Key>", "<Key>&k;</Key>",
    "<Key x='secret/q.json'>mine/a</Key>", "<Key>mine/a<Key>secret/q.json</Key></Key>", "<Key>mine/a</Key>",
    "<Key>secret/q.json</Key>",
)  # fmt: skip
_FRAMES = (
    "<Delete>{}</Delete>", "<Delete xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>{}</Delete>",
    "<!DOCTYPE Delete [<!ENTITY k 'secret/q.json'>]><Delete>{}</Delete>", "<x:Delete xmlns:x='u'>{}</x:Delete>",
    "<?xml version='1.0' encoding='utf-16'?><Delete>{}</Delete>", "<Delete><Quiet>true</Quiet>{}</Delete>",
    "<Delete>{}<b:Object xmlns:b='u'><Key>mine/a</Key></b:Object></Delete>",
)  # fmt: skip


def _deletions(stage: Stage, random: Random) -> Drawn:
    rows = "".join(f"<Object>{random.choice(_KEYS)}</Object>" for _ in range(random.choice([1, 1, 2])))
    text = random.choice(_FRAMES).format(rows)
    if random.random() < 0.3:
        inner = "<Delete><Object><Key>secret/q.json</Key></Object></Delete>"
        text = f"<Delete><Object><Key>mine/a</Key></Object></Delete><?x {_parts({'key': 'x', 'file': inner})}?>"
    body = text.encode(random.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig", "utf-16-le"]))
    kind = random.choice([{}, {}, {"content-type": random.choice(_TYPES)}])
    target = random.choice(["/team?delete"] * 5 + ["/team?delete=&x-id=y", "/team/?delete"])
    return Drawn("deletions", "s3", "POST", target, kind, body)


_PATHS = (
    "/team/mine/a", "/team/mine/../secret/q.json", "/team/mine/%2e%2e/secret/q.json",
    "/team/mine%2f..%2fsecret/q.json", "/team/mine/a%00secret/q.json", "/team/mine/%252e%252e/secret/q.json",
    "//team/secret/q.json", "/team//secret/q.json", "/te%61m/secret/q.json", "/team/secret%2Fq.json",
    "/team/mine/%c0%ae%c0%ae/secret/q.json", "/team/mine/a;/../secret/q.json", "/team/mine/a?versionId=",
    "/team/mine/a?versionId=null", "/team/mine/a?acl", "/team/mine/a?tagging", "/team/secret/q.json",
    "/team/mine/a?uploads", "/team/mine/a?x-id=GetObject", "/team?policy", "/team?prefix=secret",
    "/team/mine/a#/secret/q.json", "/team/mine/a?tagging&acl", "/team/mine/a?key=secret/q.json",
    "/team/mine/a?prefix=..&delete", "/own%2Dbucket",
)  # fmt: skip
_SOURCES = (
    "team/mine/a", "/team/secret/q.json", "team/secret%2Fq.json", "team/mine/../secret/q.json",
    "team/mine/a?versionId=null", "http://h/team/secret/q.json", "team/mine/a#/../../secret/q.json",
    "team/mine/a;x=/secret/q.json", "//team/secret/q.json", "team/mine/a?versionId=1&versionId=2", "team",
    "team%2fsecret%2fq.json", "team/mine/a?x=team/secret/q.json",
)  # fmt: skip
_BODIES = (
    b"", b"new", b'{"versionId": "null", "uploadId": "x", "Key": "secret/q.json"}', b"key=secret/q.json&file=x",
    b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    _parts({"key": "secret/q.json", "file": "x"}).encode(),
)  # fmt: skip


def _object_headers(random: Random) -> dict[str, str]:
    rows: list[dict[str, str]] = [
        {}, {"content-type": random.choice(_TYPES)}, {"x-amz-copy-source": random.choice(_SOURCES)},
        {"x_amz_copy_source": "team/secret/q.json"}, {"x-amz-tagging": "a=b"}, {"x-amz-acl": "public-read"},
        {"x-amz-meta-a": "b"}, {"range": random.choice(["bytes=0-1", "bytes=", "x"])},
        {"x-http-method-override": "DELETE"},
        {"x-amz-storage-class": "GLACIER"}, {"host": random.choice(["secret.s3.amazonaws.com", HOST])},
        {"x-moto-account-id": "1"}, {"if-match": "x"}, {"x-amz-copy-source-if-match": "x"},
    ]  # fmt: skip
    return {**random.choice(rows), **random.choice(rows)}


def _object(stage: Stage, random: Random) -> Drawn:
    method = random.choice(["GET", "PUT", "PUT", "DELETE", "POST", "HEAD"])
    return Drawn("objects", "s3", method, random.choice(_PATHS), _object_headers(random), random.choice(_BODIES))


def _upload(stage: Stage, random: Random) -> Drawn:
    complete = (
        b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"
    )
    identifier = random.choice([stage.upload] * 4 + [quote(stage.upload, safe="").lower(), f"{stage.upload}%00", ""])
    number = random.choice(["", "&partNumber=1", "&partNumber=1", "&partNumber=01", "&partNumber=x"])
    path = random.choice(["/team/mine/a"] * 4 + ["/team/mine/../.trainyard/code/x.tar.gz", f"/team/mine/%2e%2e/{CODE}"])
    method = random.choice(["GET", "PUT", "POST", "DELETE"])
    body = random.choice([complete, complete, b"EVIL", b""])
    return Drawn("uploads", "s3", method, f"{path}?uploadId={identifier}{number}", _object_headers(random), body)


def _link(stage: Stage, random: Random) -> Drawn:
    made, used = random.choice(["PUT"] * 4 + ["GET", "HEAD"]), random.choice(["", "", "", "", "POST", "DELETE"])
    target = linked(stage.deployer, made, "/team/shared/x") + random.choice([""] * 6 + ["&acl", "&versionId=null"])
    return Drawn("links", "s3", used or made, target, _object_headers(random), random.choice(_BODIES), link=True)


def _chunks(stage: Stage, random: Random) -> Drawn:
    data = random.choice(["new", "x-amz-tagging:a=b", ""])
    size = random.choice(
        [f"{len(data):x}", f"{len(data):X};chunk-signature=0", f"+{len(data):x}", f"-{len(data):x}", "ffffffff"]
    )
    trailer = random.choice(["", "x-amz-copy-source:team/secret/q.json\r\n", "x-amz-checksum-crc32:AAAAAA==\r\n"])
    headers = {
        "x-amz-content-sha256": random.choice(["STREAMING-UNSIGNED-PAYLOAD-TRAILER"] * 3 + [
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "UNSIGNED-PAYLOAD"]),
        "x-amz-decoded-content-length": random.choice([str(len(data)), "0", "-1", "x"]),
        "x-amz-trailer": random.choice(["x-amz-checksum-crc32", "x-amz-copy-source", ""]),
        "content-encoding": "aws-chunked",
    }  # fmt: skip
    path = random.choice(["/team/mine/a", "/team?delete", "/team/mine/a?tagging"])
    body = f"{size}\r\n{data}\r\n0\r\n{trailer}\r\n".encode()
    return Drawn("pieces", "s3", random.choice(["PUT", "POST"]), path, headers, body)


_PROFILES = (
    "", "&IamInstanceProfile.Name=small", "&IamInstanceProfile.Name=boss",
    f"&IamInstanceProfile.Arn=arn:aws:iam::{ACCOUNT}:instance-profile/boss",
    f"&IamInstanceProfile.Arn=arn:aws:iam::{ACCOUNT}:instance-profile/boss&IamInstanceProfile.Name=small",
)  # fmt: skip


def _launch(stage: Stage, random: Random) -> Drawn:
    """A launch template and a call, whose merge launches with another role than either seems to."""
    template = random.choice(["", *("&LaunchTemplate.LaunchTemplateName=small",) * 3])
    version = random.choice(["", "", "&LaunchTemplate.Version=1", "&LaunchTemplate.Version=$Latest",
                             "&LaunchTemplate.Version=-1",
                             "&LaunchTemplate.LaunchTemplateId=lt-0123456789abcdef0"])  # fmt: skip
    image = random.choice(["", "&ImageId=ami-0d11a1b2c3d4e5f60&InstanceType=t3.micro"])
    parts = [template, version, image, random.choice(_PROFILES)]
    random.shuffle(parts)
    operation = random.choice(["RunInstances"] * 9 + ["RequestSpotInstances"])
    body = f"Action={operation}&Version=2016-11-15&MinCount=1&MaxCount=1{''.join(parts)}".encode()
    return Drawn("launches", "ec2", "POST", "/", {"content-type": FORM}, body)


def _references(stage: Stage, random: Random) -> Drawn:
    """Ids of others in any parameter of a call about a resource of one's own."""
    names = random.sample(["AddRouteTableId", "AddSecurityGroupId", "AddSubnetId", "RemoveRouteTableId"], 2)
    values = [random.choice([*stage.routes.values(), *stage.groups.values()]) for _ in names]
    more = "".join(f"&{name}.1={value}" for name, value in zip(names, values, strict=True))
    body = f"Action=ModifyVpcEndpoint&Version=2016-11-15&VpcEndpointId={stage.endpoint}{more}".encode()
    return Drawn("references", "ec2", "POST", "/", {"content-type": FORM}, body)


def _principal(stage: Stage, random: Random) -> Drawn:
    """What a bucket's policy gives to a role of this name in another account, folder or kind."""
    path = random.choice(["account", "folder", "user", "mine"])
    return Drawn("principals", "s3", random.choice(["GET", "HEAD"]), f"/team/of-{path}/x", {}, session=True)


SEAMS: Mapping[str, Callable[[Stage, Random], Drawn]] = {
    "two forms": _two_forms, "two names": _two_names, "two places": _two_places, "tags": _tags, "JSON": _json,
    "deletions": _deletions, "objects": _object, "uploads": _upload, "links": _link, "pieces": _chunks,
    "launches": _launch, "references": _references, "principals": _principal,
}  # fmt: skip
