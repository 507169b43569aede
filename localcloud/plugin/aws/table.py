# SPDX-License-Identifier: Apache-2.0
"""A resource type from a row, by the conventions of AWS's APIs and of botocore's models."""

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from localcloud.plugin.aws.rows import Added, AwsRow, Change, Read, fill, parts_of
from localcloud.plugin.aws.session import AwsSession
from localcloud.plugin.aws.shapes import Judged, alike, member_of, pulumi_name, search, shown
from localcloud.plugin.aws.tags import ATTEMPT, all_tags, tags_for, visible
from localcloud.plugin.table import TableResource, rules_of, unchangeable_error
from provider.aws_dl1.calls import attempt, code_of, is_gone
from provider.base.diff import canonical
from provider.base.errors import InputFailure, ProviderError
from provider.base.resource import Call, CheckedInputs
from provider.base.values import Properties

T = TypeVar("T")

# Inputs whose keys users choose.
MAPS = frozenset({"metadata", "tags", "tagsAll", "volumeTags"})
# Every type has it, but for those of services that are the same in every region.
REGION = "region"
GLOBAL = frozenset({"iam"})


class AwsResource(TableResource):
    """The conventions. A type that departs from them has a subclass in localcloud.plugin.aws.behaviours."""

    row: AwsRow
    _session: Callable[[], AwsSession]

    def __init__(self, token: str, row: AwsRow, session: Callable[[], AwsSession]) -> None:
        super().__init__(token, row, session)
        rules = rules_of(token, MAPS)
        self.rules = replace(rules, replace=rules.replace | self._regional)
        self.secret_outputs = row.secret_outputs

    # -- names

    @property
    def _regional(self) -> frozenset[str]:
        return frozenset() if self.row.service in GLOBAL else frozenset({REGION})

    def inputs_of_api(self) -> frozenset[str]:
        tagged = {"tagsAll"} if "tags" in self.row.inputs else set()
        return frozenset(self.row.inputs) | tagged | self._regional

    def outputs_of_api(self) -> frozenset[str]:
        return frozenset(self.row.outputs) | frozenset(self.row.computed) | self.inputs_of_api()

    @cached_property
    def _names_back(self) -> Mapping[str, str]:
        """`renamed` turned around: the path of a member -> its Pulumi name."""
        back = {}
        for path, member in self.row.renamed.items():
            *above, name = path.split(".")
            members = [self.row.renamed.get(".".join(above[: n + 1]), _capital(one)) for n, one in enumerate(above)]
            back[".".join([*members, member])] = name
        return back

    def live(self, model: Properties) -> Properties:
        """The fields of the model by their Pulumi names."""
        names = {member: name for name, member in self.row.found.items() if member in model}
        found = {name: search(where, model) for name, where in self.row.found.items()}
        return {**shown(model, {**self._names_back, **names}), **shown(found, self._names_back)}

    def shown(self, model: Any, inputs: Properties) -> Properties:
        live = {name: value for name, value in self.live(model).items() if name in self.outputs_of_api()}
        if "tags" in self.row.inputs:
            live |= self._shown_tags(live.get("tags") or {}, inputs)
        if self._regional:
            live[REGION] = inputs.get(REGION) or self._session().region_name
        given = {name: value for name, value in inputs.items() if name != "__defaults"}
        live = {name: alike(value, given.get(name)) for name, value in live.items() if value is not None}
        return {**given, **live, **self._computed({**given, **model, **live})}

    def _shown_tags(self, tags: Mapping[str, str], inputs: Properties) -> Properties:
        live, given = visible(tags), inputs.get("tags") or {}
        defaults = self._session().default_tags
        own = {key: value for key, value in live.items() if defaults.get(key) != value or key in given}
        return {"tags": own if own or given else None, "tagsAll": live}

    def _computed(self, context: Properties) -> Properties:
        around = {**context, REGION: self.region(context)}
        around |= {"account": self._session().account} if self._needs_account else {}
        filled = {name: fill(template, around) for name, template in self.row.computed.items()}
        return {name: value for name, value in filled.items() if value is not None}

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(fill(self.row.id, {**inputs, **model}))

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        parts = parts_of(self.row.id, id)
        return {name: value for name, value in parts.items() if name in self.inputs_of_api()}

    def state_of(self, model: Any) -> str | None:
        return search(self.row.state, model) if self.row.state else None

    def reason_of(self, model: Any) -> str:
        return str(search(self.row.state_reason, model) or "") if self.row.state_reason else ""

    # -- before the update

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        checked = super().check(call, old, new)
        inputs, failures = checked.inputs, list(checked.failures)
        defaults = self._session().default_tags
        if defaults and "tags" in self.row.inputs:
            inputs["tagsAll"] = all_tags(defaults, inputs)
        return CheckedInputs(inputs, tuple(failures or self.judged(inputs)))

    def _made_name(self, call: Call, old: Properties, inputs: Properties) -> str:
        prefix = inputs.get(f"{self.row.named}Prefix")
        if not isinstance(prefix, str):
            return super()._made_name(call, old, inputs)[: self.row.longest_name]
        seed = hashlib.sha256(call.seed or call.urn.encode()).hexdigest()
        return str(old.get(self.row.named) or f"{prefix}{seed[:26]}")[: self.row.longest_name]

    def judged(self, inputs: Properties) -> list[InputFailure]:
        """What botocore's models find wrong: with the creation, and with every other call that takes an input."""
        judged = Judged(self.row.renamed)
        made = {**dict.fromkeys(self.row.fixed), **self.creation(judged, inputs)}
        shape, body = self.shape(self.row.create), self.row.body
        if body:
            lacking = [name for name in shape.members[body].required_members if name not in made[body]]
            judged.failures += [self._missing(name) for name in lacking]
        judged.failures += [self._missing(name) for name in shape.required_members if name not in made]
        for change in self.row.changes:
            wanted = {name: inputs[name] for name in change.inputs if inputs.get(name) is not None}
            judged.failures += self._judge_change(change, wanted) if wanted else []
        return list({failure.property: failure for failure in reversed(judged.failures)}.values())

    def _missing(self, member: str) -> InputFailure:
        names = {**self._names_back, **{where: name for name, where in self.row.found.items()}}
        return InputFailure(names.get(member, pulumi_name(member)), f"{self.token} needs this property.")

    def _judge_change(self, change: Change, wanted: Properties) -> list[InputFailure]:
        judged = Judged({**self.row.renamed, **change.names})
        self._body_of(judged, change, wanted)
        return [InputFailure(_without(one.property, change.value), one.reason) for one in judged.failures]

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        if old_outputs is None and self._regional:
            outputs[REGION] = inputs.get(REGION) or self._session().region_name
        return outputs

    # -- calls

    def region(self, inputs: Mapping[str, Any]) -> str:
        given = inputs.get(REGION)
        return given if isinstance(given, str) else self._session().region_name

    def shape(self, operation: str) -> Any:
        return self._session().operation(self.row.service, operation).input_shape

    def ask(self, inputs: Mapping[str, Any], operation: str, parameters: Mapping[str, Any]) -> Properties:
        """One call of the API, by the operation's name in botocore's model."""
        given = {key: value for key, value in parameters.items() if value is not None}
        return self._session().ask(self.row.service, self.region(inputs), operation, given)

    def write(self, call: Call, inputs: Mapping[str, Any], operation: str, parameters: Mapping[str, Any]) -> Properties:
        return attempt(call, f"{operation} {call.name}", lambda: self.ask(inputs, operation, parameters))

    def _attempt(self, call: Call, what: str, operation: Callable[[], T]) -> T:
        return attempt(call, what, operation)

    def _is_gone(self, error: BaseException) -> bool:
        return is_gone(error) or code_of(error) in self.row.reads[0].missing

    def _in_use(self, error: BaseException) -> str | None:
        return str(error) if code_of(error) in self.row.needed else None

    def around(self, id: str, inputs: Mapping[str, Any]) -> Properties:  # noqa: A002
        """What templates are filled with."""
        account = {"account": self._session().account} if self._needs_account else {}
        return {**inputs, **self.parse_id(id), "id": id, REGION: self.region(inputs), **account}

    @cached_property
    def _needs_account(self) -> bool:
        """Whether a template of this row names the account, which costs a call to ask for."""
        return "{account}" in repr(self.row)

    # -- creation

    @property
    def _holder(self) -> Any:
        """The shape that takes most of the inputs at the creation."""
        shape = self.shape(self.row.create)
        return shape.members[self.row.body] if self.row.body else shape

    def _takes(self, shape: Any, name: str) -> bool:
        return name in self.row.inside or member_of(shape, name, self.row.renamed.get(name, "")) is not None

    def creation(self, judged: Judged, inputs: Properties) -> Properties:
        """The parameters of the creation that inputs give. Inputs that other calls take are left to them."""
        holder, shape = self._holder, self.shape(self.row.create)
        later = {name for name in self._changed_by_calls() if not self._takes(holder, name)}
        own = {*self.row.extra, *later, "__defaults", "tagsAll", REGION, f"{self.row.named}Prefix", *self.row.inside}
        own |= {"tags"} if self.row.tagging else set()
        given = {name: value for name, value in inputs.items() if name not in own and value is not None}
        outside = {name: given.pop(name) for name in list(given) if self.row.body and not self._takes(holder, name)}
        made = judged.parameters(holder, given)
        for name, where in self.row.inside.items():
            if inputs.get(name) is not None:
                _put(made, where, judged.parameters(_shape_at(holder, where), inputs[name], name))
        return {**judged.parameters(shape, outside), self.row.body: made} if self.row.body else made

    def _changed_by_calls(self) -> set[str]:
        return {name for change in self.row.changes for name in change.inputs}

    def _create_once(self, call: Call, inputs: Properties) -> Any:
        """An attempt marks what it makes with a tag, at its creation. The same inputs of the same resource give the
        same mark, so what an attempt made that was killed is recognized, and taken up."""
        seed = str(uuid.uuid4()) if call.anew else f"{call.urn}\n{canonical(inputs)}"
        mark = hashlib.sha256(seed.encode()).hexdigest()[:32]
        mine = None if call.anew else self._left_over(call, inputs, mark)
        if mine is not None:
            return mine
        try:
            return self._create(call, inputs, mark)
        except ProviderError as error:
            if code_of(error.__cause__) not in self.row.taken:
                raise
            mine = None if call.anew else self._of_same_name(call, inputs, mark)
            if mine is not None:
                return mine
            name = inputs.get(self.row.named) if self.row.named else None
            remedy = self._ways_out(call, name) if self.row.existing and name else error.remedy
            raise ProviderError(error.cause, remedy) from error.__cause__

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        shape = self.shape(self.row.create)
        made = {**fill(self.row.fixed, self.around("", inputs)), **self.creation(Judged(self.row.renamed), inputs)}
        if self.row.tagging:
            tags = all_tags(self._session().default_tags, inputs)
            made |= tags_for(shape, self.row.kind, {**tags, ATTEMPT: mark})
        tokens = self._session().operation(self.row.service, self.row.create).idempotent_members
        made |= dict.fromkeys({*tokens, *({"ClientToken"} & shape.members.keys())}, mark)
        answer = self.write(call, inputs, self.row.create, made)
        return search(self.row.created, answer) or {}

    def _left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        """What a killed attempt has made, for types whose names nobody chooses."""
        first = self.row.reads[0]
        if not self.row.kind or "Filters" not in self.shape(first.operation).members:
            return None
        filters = [{"Name": f"tag:{ATTEMPT}", "Values": [mark]}]
        model = search(first.at, self.write(call, inputs, first.operation, {"Filters": filters}))
        return None if not model or self.state_of(model) in self.row.gone else model

    def _of_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """The resource that has the name already, if an attempt for this very resource made it."""
        model = self._get(call, self.id_of({}, inputs), inputs)
        tags = shown(model, {}).get("tags") if model else {}
        return model if tags and tags.get(ATTEMPT) == mark else None

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        holder, live = self._holder, self.live(model)
        for change in self.row.changes:
            names = [name for name in change.inputs if not self._takes(holder, name)]
            wanted = {name: inputs[name] for name in names if inputs.get(name) not in (None, live.get(name))}
            if wanted:
                self._apply(call, id, change, wanted, {**model, **inputs})
        complete = self._get(call, id, inputs)
        return model if complete is None else complete

    # -- reading

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        model: Properties = {}
        for read in self.row.reads:
            part = self._read(call, read, {**self.around(id, inputs), **model})
            if not part and read is self.row.reads[0]:
                return None
            model |= part or {}
        return None if self.state_of(model) in self.row.gone else model

    def _read(self, call: Call, read: Read, around: Properties) -> Any:
        def ask() -> Any:
            try:
                answer = self.ask(around, read.operation, fill(read.parameters, around))
                return search(fill(read.at, around), answer)
            except Exception as error:
                if is_gone(error) or code_of(error) in read.missing:
                    return None
                raise

        return attempt(call, f"Read {call.name}", ask)

    # -- changes

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        model = self._get(call, id, new) or {}
        live, left = {**model, **self.live(model)}, set(changed) - self.row.extra - {"tags", "tagsAll"}
        for change in self.row.changes:
            if touched := left & set(change.inputs):
                names = change.inputs if change.together else touched
                wanted = {name: _or_else(new.get(name), self.row.unset.get(name)) for name in sorted(names)}
                self._take_back(call, id, change, live)
                self._apply(call, id, change, wanted, {**live, **new})
                left -= touched
        for added in self.row.lists:
            if added.input in left:
                self._exchange(call, id, added, set(live.get(added.input) or ()), new)
                left.discard(added.input)
        if left:
            raise unchangeable_error(call, sorted(left))
        if {"tags", "tagsAll"} & set(changed):
            self._retag(call, id, live, new)

    def _apply(self, call: Call, id: str, change: Change, wanted: Properties, around: Properties) -> None:  # noqa: A002
        path, given = self.around(id, around), {name: value for name, value in wanted.items() if value is not None}
        if not given and not change.undo:
            raise unchangeable_error(call, sorted(wanted))
        if not given:
            if not change.exclusive:  # an exclusive value was taken back already
                self.write(call, around, change.undo, fill(_undo_of(change), path))
            return
        for one in [given] if change.together else [{name: given[name]} for name in given]:
            body = self._body_of(Judged({**self.row.renamed, **change.names}), change, one)
            self.write(call, around, change.operation, {**fill(change.parameters, path), **body})

    def _take_back(self, call: Call, id: str, change: Change, live: Properties) -> None:  # noqa: A002
        if change.exclusive and any(live.get(name) for name in change.inputs):
            self.write(call, live, change.undo, fill(_undo_of(change), self.around(id, live)))

    def _body_of(self, judged: Judged, change: Change, given: Properties) -> Properties:
        shape = self.shape(change.operation)
        holder = shape.members[change.body] if change.body else shape
        if change.value:
            given = {name: {change.value: value} for name, value in given.items()}
        body = judged.parameters(holder, given)
        return {change.body: body} if change.body else dict(body)

    def _exchange(self, call: Call, id: str, added: Added, now: set[str], new: Properties) -> None:  # noqa: A002
        wanted = set(new.get(added.input) or ())
        lists = {added.add: sorted(wanted - now), added.remove: sorted(now - wanted)}
        given = {name: items for name, items in lists.items() if items}
        if given:
            self.write(call, new, added.operation, {**fill(added.parameters, self.around(id, new)), **given})

    def _retag(self, call: Call, id: str, live: Properties, new: Properties) -> None:  # noqa: A002
        tagging = self.row.tagging
        if tagging is None:
            raise unchangeable_error(call, ["tags"])
        now, wanted = visible(live.get("tags") or {}), all_tags(self._session().default_tags, new)
        path = fill(tagging.parameters, self.around(id, {**new, **live}))
        if gone := sorted(now.keys() - wanted.keys()):
            keys = [{"Key": key} for key in gone] if tagging.keys == "Tags" else gone
            self.write(call, new, tagging.untag, {**path, tagging.keys: keys})
        if more := {key: value for key, value in wanted.items() if now.get(key) != value}:
            shape = self.shape(tagging.tag).members[tagging.tags]
            self.write(call, new, tagging.tag, {**path, tagging.tags: Judged().parameters(shape, more)})

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        exclusive = [change for change in self.row.changes if change.exclusive]
        model = (self._get(call, id, {**outputs, **inputs}) if exclusive else None) or {}
        for change in exclusive:
            self._take_back(call, id, change, {**inputs, **model, **self.live(model)})
        super().delete(call, id, outputs, inputs)

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        self.ask(inputs, self.row.delete, fill(self.row.delete_with, self.around(id, inputs)))


def _or_else(value: Any, other: Any) -> Any:
    return other if value is None else value


def _undo_of(change: Change) -> Mapping[str, Any]:
    return change.parameters if change.undo_with is None else change.undo_with


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _without(path: str, member: str) -> str:
    return path.removesuffix(f".{member}") if member else path


def _steps(shape: Any, where: str) -> Iterator[Any]:
    for name in where.split("."):
        shape = shape.members[name]
        yield shape


def _shape_at(shape: Any, where: str) -> Any:
    return list(_steps(shape, where))[-1]


def _put(made: Properties, where: str, value: Any) -> None:
    *above, last = where.split(".")
    for name in above:
        made = made.setdefault(name, {})
    made[last] = value
