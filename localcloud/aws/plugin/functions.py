# SPDX-License-Identifier: Apache-2.0
"""The provider's functions, such as `getVpc`, by their rows."""

from collections.abc import Callable, Mapping
from functools import partial

from components.aws.types.functions import FUNCTIONS, AwsFunction
from components.aws.types.templates import fill_template
from components.platform.calls import Call, ProviderError, Stop
from components.platform.values import Properties
from components.s3 import call_aws, code_of
from localcloud.aws.plugin.session import AwsSession, visible_tags
from localcloud.aws.plugin.shapes import search_path, to_pulumi
from provider.base.resource import Function
from provider.base.wire import Engine, UrnReporter

_PARTITION = {
    "partition": "aws", "id": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"
}  # fmt: skip
# Functions that make no call. Each gets the region.
PLACES: Mapping[str, Callable[[str], Properties]] = {
    "aws:index/getRegion:getRegion": lambda region: {"region": region, "name": region, "id": region},
    "aws:index/getPartition:getPartition": lambda region: dict(_PARTITION),
}


def aws_function_of(token: str, session: Callable[[], AwsSession]) -> Function | None:
    if token in PLACES:
        return lambda args: {**args, **PLACES[token](args.get("region") or session().region_name)}
    lookup = FUNCTIONS.get(token)
    return None if lookup is None else lambda args: call_aws_function(token, lookup, session(), args)


def call_aws_function(token: str, lookup: AwsFunction, session: AwsSession, args: Properties) -> Properties:
    call = Call("", token, token, UrnReporter(Engine(), "", frozenset()), Stop())
    values = {**args, "region": args.get("region") or session.region_name}
    if token.endswith("getParameter") and args.get("withDecryption") is None:
        values["withDecryption"] = True
    if token.endswith("getSecret:getSecret"):
        values["secret"] = args.get("arn") or args.get("name")
    parameters = {
        key: value for key, value in fill_template(lookup.parameters, values).items() if value not in (None, [None])
    }
    given: dict[str, list[str]] = {}
    for key, name in lookup.filters.items():
        if args.get(key) is not None:
            listed = args[key] if isinstance(args[key], list) else [args[key]]
            given[name] = [str(each).lower() if isinstance(each, bool) else str(each) for each in listed]
    tags = args.get("tags") or args.get("instanceTags") or {}
    given |= {f"tag:{key}": [value] for key, value in tags.items()}
    given |= {one["name"]: list(one["values"]) for one in args.get("filters") or ()}
    filters = [{"Name": name, "Values": values} for name, values in given.items()]
    parameters |= {"Filters": filters} if filters else {}
    name = token.rpartition(":")[2]
    ask = partial(session.ask, lookup.service, values["region"], lookup.operation, parameters)
    answer = call_aws(call, name, ask)
    model = search_path(fill_template(lookup.at, values), answer)
    if lookup.one:
        items = list(model or ())
        if not items:
            raise ProviderError(f"{name}: there are no results.", "Correct the arguments or the region.")
        if len(items) > 1 and not args.get("mostRecent"):
            raise ProviderError(f"{name}: there are {len(items)} results, and one is needed.", "Give more arguments.")
        model = items[-1]
    _make_unused_calls(call, lookup, session, {**values, **to_pulumi(model, {})})
    live = {key: value for key, value in to_pulumi(model, {}).items() if value is not None}
    live.pop("responseMetadata", None)
    if isinstance(live.get("tags"), Mapping):
        live["tags"] = visible_tags(live["tags"])
    result = {**args, **live, "region": values["region"]}
    if lookup.operation == "HeadBucket":
        bucket = args["bucket"]
        result |= {"arn": f"arn:aws:s3:::{bucket}", "bucketDomainName": f"{bucket}.s3.amazonaws.com"}
        result["bucketRegion"] = result.get("bucketRegion") or values["region"]
    return {**result, "id": str(live.get("id") or fill_template(lookup.id, {**result, **model}) or "")}


def _make_unused_calls(call: Call, lookup: AwsFunction, session: AwsSession, values: Properties) -> None:
    for operation, template in lookup.unused_calls.items():
        parameters = {key: value for key, value in fill_template(template, values).items() if value is not None}

        def ask(operation: str = operation, parameters: Properties = parameters) -> object:
            try:
                return session.ask(lookup.service, values["region"], operation, parameters)
            except Exception as error:
                if code_of(error) in lookup.missing.split():
                    return None
                raise

        call_aws(call, f"{call.name.rsplit(':', 1)[-1]}: {operation}", ask)
