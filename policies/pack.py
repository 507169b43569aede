# SPDX-License-Identifier: Apache-2.0
"""The gRPC service of the pack: CrossGuard's protocol over the rules.

A resource is decoded once for all rules. The rules for whole stacks get the same inputs as the rules for single
resources: the engine would give them the outputs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2

from catalog.engine_values import OUTPUT, SECRET, SIGNATURE, UNKNOWNS
from catalog.secret_looks import without_tokens
from catalog.version import VERSION
from launcher.escaping import terminal_line, terminal_lines
from policies.rule import JudgedResource, PolicyRule, StackRule, Unknown, all_rules
from policies.settings import (
    ACCESS_KEY,
    ADVISORY,
    DISABLED,
    MANDATORY,
    NOT_KNOWN_YET,
    WAIVERS_KEY,
    RuleSettings,
    access_mode_from_json,
    settings_of,
    waivers_from_json,
)
from policies.verdicts import PolicyContext, PolicyResult, judge_single_resource, judge_stack

if TYPE_CHECKING:
    from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
else:
    from trainyard.engine.protocol import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

__all__ = ["Pack", "analyzer_pb2", "analyzer_pb2_grpc", "plain_properties", "plugin_pb2", "result_message"]

NAME = "trainyard"
LATER = (
    "Some values exist only after other resources are made. `pulumi up` checks these rules again; "
    "what only another stack knows, such as its registry, stays unknown here."
)
ENVIRONMENT = "trainyard:environment"
_LEVELS = {ADVISORY: analyzer_pb2.ADVISORY, MANDATORY: analyzer_pb2.MANDATORY, DISABLED: analyzer_pb2.DISABLED}
_WORDS = {number: word for word, number in _LEVELS.items()} | {analyzer_pb2.REMEDIATE: MANDATORY}


class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    """Answers the engine. `today` is called for each verdict: a waiver may end during a long `up`."""

    def __init__(self, today: Callable[[], date] = date.today) -> None:
        self._today = today
        self._terms = PolicyContext(today())
        self._asks = {rule.id: rule.asks for rule in all_rules()}
        self._seen: dict[str, JudgedResource] = {}
        self._lock = threading.Lock()

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802  # the names are the protocol's
        not_known_yet = analyzer_pb2.PolicyInfo(
            name=NOT_KNOWN_YET, description=LATER, enforcementLevel=_LEVELS[ADVISORY], policy_type=_policy_type(False)
        )
        listed = [*map(_policy_info, all_rules()), not_known_yet]
        return analyzer_pb2.AnalyzerInfo(name=NAME, version=VERSION, supportsConfig=True, policies=listed)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=VERSION)

    def ConfigureStack(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Reads only three keys of the stack's configuration."""
        config: Mapping[str, str] = request.config
        self._terms = replace(
            self._terms,
            environment=config.get(ENVIRONMENT, ""),
            access_mode=access_mode_from_json(config.get(ACCESS_KEY, "")),
            waivers=waivers_from_json(config.get(WAIVERS_KEY, "")),
        )
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The engine has validated the configuration by the schemas of GetAnalyzerInfo."""
        settings = {
            name: RuleSettings(_WORDS[given.enforcementLevel], plain_properties(given.properties))
            for name, given in request.policyConfig.items()
        }
        self._terms = replace(self._terms, settings=settings)
        return empty_pb2.Empty()

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802
        resource = _judged_resource(request)
        with self._lock:
            self._seen[resource.urn] = resource
        return self._answer(judge_single_resource(resource, self._now()))

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802
        resources = [self._seen.get(resource.urn) or _judged_resource(resource) for resource in request.resources]
        return self._answer(judge_stack(resources, self._now()))

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802
        return analyzer_pb2.RemediateResponse()

    def _now(self) -> PolicyContext:
        return replace(self._terms, on=self._today())

    def _answer(self, results: Iterable[PolicyResult]) -> Any:
        return analyzer_pb2.AnalyzeResponse(diagnostics=[self._diagnostic(result) for result in results])

    def _diagnostic(self, result: PolicyResult) -> Any:
        later = result.outcome == "unknown"
        asks = LATER if later else self._asks[result.rule]
        return analyzer_pb2.AnalyzeDiagnostic(
            policyName=NOT_KNOWN_YET if later else result.rule,
            policyPackName=NAME,
            policyPackVersion=VERSION,
            description=asks,
            message=f"{asks}\n{result_message(result)}",
            urn=result.urn,
            enforcementLevel=_LEVELS[result.level],
        )


def result_message(result: PolicyResult) -> str:
    """A result as text for people, escaped for a terminal."""
    of = f"{result.resource}: " if result.resource else ""
    if result.outcome == "unknown":
        return terminal_line(without_tokens(f"{of}{result.rule}: {result.because}"))
    waived = f"{terminal_line(result.waiver)}\n" if result.waiver else ""
    return without_tokens(waived) + terminal_lines(without_tokens(f"{of}{result.because}\nremedy: {result.remedy}"))


def _judged_resource(request: Any) -> JudgedResource:
    # Components have no provider. Most types of providers have a slash, too.
    is_component = not request.HasField("provider") and "/" not in request.type
    return JudgedResource(
        request.type,
        plain_properties(request.properties),
        request.name,
        request.urn,
        request.options.protect,
        is_component,
    )


def _policy_info(rule: PolicyRule | StackRule) -> Any:
    info = analyzer_pb2.PolicyInfo(
        name=rule.id,
        description=rule.asks,
        enforcementLevel=_LEVELS[rule.level],
        remediation_steps=rule.remedy,
        policy_type=_policy_type(isinstance(rule, StackRule)),
    )
    info.configSchema.properties.update(settings_of(rule))
    return info


def _policy_type(of_stack: bool) -> Any:
    return analyzer_pb2.POLICY_TYPE_STACK if of_stack else analyzer_pb2.POLICY_TYPE_RESOURCE


def plain_properties(struct: Any) -> dict[str, Any]:
    """The properties in a message. Secrets are judged like other values. No message repeats one."""
    return {key: _plain_value(value, key) for key, value in struct.fields.items()}


def _plain_value(value: Any, path: str) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        signature = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
        if signature in (SECRET, OUTPUT):
            return _plain_value(fields["value"], path) if "value" in fields else Unknown(path)
        # Files and archives stay mappings.
        return {key: _plain_value(item, f"{path}.{key}") for key, item in fields.items()}
    if kind == "list_value":
        return [_plain_value(item, f"{path}[{index}]") for index, item in enumerate(value.list_value.values)]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return Unknown(path) if value.string_value in UNKNOWNS else value.string_value
    return value.bool_value if kind == "bool_value" else None
