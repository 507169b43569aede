# SPDX-License-Identifier: Apache-2.0
"""The engine's gRPC protocol, for a `Plugin`."""

import json
import os
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2

from components.platform.calls import GO_ON, Call, InputFailure, PartialFailureError, ProviderError, Stop
from components.platform.values import (
    Change,
    Diff,
    Properties,
    Secret,
    canonical_json,
    changed_keys,
    changes_by_element,
    has_unknown,
    redact_secrets,
    reveal_secrets,
    seal_secrets,
    secret_texts,
)
from launcher.escaping import terminal_lines
from provider.base.reasons import as_path, diff_reasons
from provider.base.resource import Plugin, ProviderResource
from provider.base.wire import (
    Engine,
    UrnReporter,
    decode_struct,
    encode_struct,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

_KINDS: Mapping[str, Any] = {
    "add": 0,
    "delete": 2,
    "update": 4,
}  # PropertyDiff.Kind; the number after it means a replacement


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Every method unwraps the secrets of a request, calls the plugin, and marks the secrets in its result."""

    def __init__(self, plugin: Plugin, engine: Engine) -> None:
        self._plugin = plugin
        self._engine = engine
        self._stop = Stop()
        self._inputs_in_state: dict[str, str] = {}

    def stop_waiting(self) -> None:
        self._stop.ask()

    # -- the plugin as a whole

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        if request.engine_address:
            self._engine = Engine(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine = Engine(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=self._plugin.version)

    def GetSchema(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.GetSchemaResponse(schema=json.dumps(self._plugin.schema()))

    @property
    def asked_to_stop(self) -> bool:
        return self._stop.asked

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.stop_waiting()
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        news = decode_struct(request.news)
        with _Answer(context, news):
            checked = self._plugin.check_config(reveal_secrets(news))
            return _check_response(checked.inputs, checked.failures, news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        old, new = decode_struct(request.old_inputs or request.olds), decode_struct(request.news)
        with _Answer(context, old, new):
            replacing = set(self._plugin.replacing_config(reveal_secrets(old), reveal_secrets(new)))
            keys = [
                key for key in sorted({**old, **new}) if reveal_secrets(old.get(key)) != reveal_secrets(new.get(key))
            ]
            diff = Diff({key: Change("update", key in replacing) for key in keys})
            return _diff_response(diff, old, new, self._plugin.diffs_for_people())

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        config = decode_struct(request.args)
        with _Answer(context, config):
            without_unknown = {key: value for key, value in config.items() if not has_unknown(value)}
            self._plugin.configure(reveal_secrets(without_unknown))
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    # -- resources

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        old, new = decode_struct(request.olds), decode_struct(request.news)
        with _Answer(context, old, new):
            if old:
                self._inputs_in_state[request.urn] = canonical_json(reveal_secrets(old))
            call = self._call(request, new, seed=request.randomSeed)
            checked = self._resource(call.type).check(call, reveal_secrets(old), reveal_secrets(new))
            return _check_response(checked.inputs, tuple(filter(_is_worth_reporting, checked.failures)), new)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        old, outputs, new = decode_struct(request.old_inputs), decode_struct(request.olds), decode_struct(request.news)
        with _Answer(context, old, outputs, new):
            call = self._call(request, new)
            diff = self._resource(call.type).diff(
                call, reveal_secrets(old), reveal_secrets(outputs), reveal_secrets(new)
            )
            return _diff_response(diff, old, new, self._plugin.diffs_for_people())

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        inputs = decode_struct(request.properties)
        with _Answer(context, inputs):
            call = self._call(request, inputs)
            resource = self._resource(call.type)
            if request.preview:
                return provider_pb2.CreateResponse(
                    properties=_encode_outputs(resource, resource.preview(inputs, None), inputs)
                )
            anew = self._inputs_in_state.get(request.urn) == canonical_json(reveal_secrets(inputs))
            with _Kept(context, resource, inputs):
                created = resource.create(replace(call, anew=anew), reveal_secrets(inputs))
            return provider_pb2.CreateResponse(
                id=created.id, properties=_encode_outputs(resource, created.outputs, inputs)
            )

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        outputs, inputs = decode_struct(request.properties), decode_struct(request.inputs)
        with _Answer(context, outputs, inputs):
            call = self._call(request, outputs, inputs)
            resource = self._resource(call.type)
            with _Kept(context, resource, inputs, outputs):
                live = resource.read(call, request.id, reveal_secrets(outputs), reveal_secrets(inputs))
            if live is None:
                return provider_pb2.ReadResponse()
            return provider_pb2.ReadResponse(
                id=live.id,
                properties=_encode_outputs(resource, live.outputs, inputs, outputs),
                inputs=encode_struct(seal_secrets(live.inputs, inputs)),
            )

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        outputs, old, new = decode_struct(request.olds), decode_struct(request.old_inputs), decode_struct(request.news)
        with _Answer(context, outputs, old, new):
            call = self._call(request, outputs, old, new)
            resource = self._resource(call.type)
            if request.preview:
                return provider_pb2.UpdateResponse(
                    properties=_encode_outputs(resource, resource.preview(new, outputs), new)
                )
            with _Kept(context, resource, new, outputs):
                updated = resource.update(
                    call, request.id, reveal_secrets(outputs), reveal_secrets(old), reveal_secrets(new)
                )
            return provider_pb2.UpdateResponse(properties=_encode_outputs(resource, updated, new, outputs))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        outputs, inputs = decode_struct(request.properties), decode_struct(request.old_inputs)
        with _Answer(context, outputs, inputs):
            call = self._call(request, outputs, inputs)
            self._resource(call.type).delete(call, request.id, reveal_secrets(outputs), reveal_secrets(inputs))
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        args = decode_struct(request.args)
        with _Answer(context, args):
            function = self._plugin.function(request.tok)
            if function is None:
                raise ProviderError(f"The provider `{self._plugin.name}` has no function `{request.tok}`.")
            return provider_pb2.InvokeResponse(
                **{"return": encode_struct(seal_secrets(function(reveal_secrets(args)), args))}
            )

    def _call(self, request: Any, *values: Properties, seed: bytes = b"") -> Call:
        _, _, type_chain, *name = request.urn.split("::", 3)
        report = UrnReporter(self._engine, request.urn, secret_texts(*values))
        kind = request.type or type_chain.split("$")[-1]
        shown = request.name or (name[0] if name else "")
        return Call(request.urn, kind, shown, report, self._stop, getattr(request, "timeout", 0.0), seed)

    def _resource(self, token: str) -> ProviderResource:
        resource = self._plugin.resource(token)
        if resource is None:
            raise ProviderError(f"The provider `{self._plugin.name}` does not know the type `{token}`.")
        return resource


class _Answer:
    """Turns an exception in its body into an error that the engine shows as text, without secrets."""

    def __init__(self, context: Any, *values: Properties) -> None:
        self._context = context
        self._values = values

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        has_answered = self._context.code() is not None
        if error is None or has_answered:
            return
        if isinstance(error, ProviderError):
            message = str(error)
        else:
            message = "".join(traceback.format_exception(error))
            message = f"This is a bug in the provider. Please report it with these lines.\n{message}"
        self._context.abort(
            grpc.StatusCode.UNKNOWN, terminal_lines(redact_secrets(message, secret_texts(*self._values)))
        )


class _Kept:
    """Reports a resource that exists but is not as requested, so that the engine keeps it in its state."""

    def __init__(self, context: Any, resource: ProviderResource, inputs: Properties, *olds: Properties) -> None:
        self._context, self._resource, self._inputs, self._olds = context, resource, inputs, olds

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PartialFailureError):
            self._abort(error)

    def _abort(self, error: PartialFailureError) -> NoReturn:
        message = terminal_lines(redact_secrets(str(error), secret_texts(self._inputs, *self._olds)))
        detail = provider_pb2.ErrorResourceInitFailed(
            id=error.resource_id,
            properties=_encode_outputs(self._resource, error.outputs, self._inputs, *self._olds),
            reasons=[message],
            inputs=encode_struct(self._inputs),
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
        status.details.add().Pack(detail)
        self._context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
        self._context.abort(grpc.StatusCode.UNKNOWN, message)
        raise AssertionError("abort always raises")


def _encode_outputs(resource: ProviderResource, outputs: Mapping[str, Any], *models: Properties) -> Any:
    marked = {key: Secret(value) if key in resource.secret_outputs else value for key, value in outputs.items()}
    return encode_struct(seal_secrets(marked, *models))


def _is_worth_reporting(failure: InputFailure) -> bool:
    """Whether a failure counts. After an error, an engine that continues also checks the resources that depend on the
    failed one, without its outputs, and creates none of them. A missing input would only be a consequence of the first
    error."""
    return not (failure.missing and os.environ.get(GO_ON) == "true")


def _check_response(inputs: Properties, failures: tuple[InputFailure, ...], model: Properties) -> Any:
    texts = secret_texts(model)
    return provider_pb2.CheckResponse(
        inputs=encode_struct(seal_secrets(inputs, model)),
        failures=[
            provider_pb2.CheckFailure(property=f.property, reason=terminal_lines(redact_secrets(f.reason, texts)))
            for f in failures
        ],
    )


def _diff_response(diff: Diff, old: Properties, new: Properties, for_people: bool) -> Any:
    words = diff_reasons(diff, old, new) if for_people else []
    changes = changes_by_element(diff.changes, reveal_secrets(old), reveal_secrets(new))
    detailed = {
        path: provider_pb2.PropertyDiff(kind=_KINDS[change.kind] + change.replaces, inputDiff=True)
        for path, change in changes.items()
    }
    shown = {as_path(reason): provider_pb2.PropertyDiff(kind=_KINDS["update"], inputDiff=True) for reason in words}
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if detailed else provider_pb2.DiffResponse.DIFF_NONE,
        replaces=diff.replaces if for_people else sorted(changed_keys(diff.replaces)),
        diffs=[*_changed_paths(diff, words), *words] if for_people else sorted(changed_keys(diff.changes)),
        detailedDiff={**detailed, **shown},
        hasDetailedDiff=True,
        deleteBeforeReplace=diff.delete_before_replace and bool(diff.replaces),
    )


def _changed_paths(diff: Diff, words: list[str]) -> list[str]:
    """The changed paths for the engine's one-line view, which shows each key by its name.

    A path with a reason is written in the engine's other spelling, so that the view does not show it twice.
    """
    explained = {word.partition(":")[0] for word in words if ":" in word}
    return [as_path(path) if path in explained else path for path in diff.changes]
