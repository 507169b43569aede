# SPDX-License-Identifier: Apache-2.0
"""Creates, reads, updates and deletes the resources of a row, in the way that most AWS types share."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from components.aws.types.aws_resource_type import ATTEMPT_TAG, Change, ListChange, Read
from components.aws.types.templates import fill_template, names_in
from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from components.s3 import call_aws, code_of, is_missing_in_aws
from localcloud.aws.plugin.properties import AwsProperties
from localcloud.aws.plugin.session import all_tags, tags_for, visible_tags
from localcloud.aws.plugin.shapes import ParameterBuilder, search_path, to_pulumi
from localcloud.plugins.engine import unchangeable_error
from localcloud.plugins.resource_table import creation_seed

T = TypeVar("T")
# While AWS remembers a client token, a resource can be created and deleted by others at most this many times.
_LIVES = 10
# Error codes for addresses and routes that are in use. A row has the codes for names.
_COLLISIONS = frozenset({"InvalidSubnet.Conflict", "RouteAlreadyExists", "Resource.AlreadyAssociated"})


class AwsResource(AwsProperties):
    """The behaviour of most types. Other types have a subclass in localcloud.aws.plugin.behaviours."""

    # -- calls

    def ask(self, inputs: Mapping[str, Any], operation: str, parameters: Mapping[str, Any]) -> Properties:
        """Calls an operation by its name in botocore's model. `service:Operation` is one of another service."""
        given = {key: value for key, value in parameters.items() if value is not None}
        service, _, name = operation.rpartition(":")
        return self._session().ask(service or self.row.service, self.region(inputs), name, given)

    def write(self, call: Call, inputs: Mapping[str, Any], operation: str, parameters: Mapping[str, Any]) -> Properties:
        return call_aws(call, f"{operation} {call.name}", lambda: self.ask(inputs, operation, parameters))

    def _attempt(self, call: Call, what: str, operation: Callable[[], T]) -> T:
        return call_aws(call, what, operation)

    def _is_gone(self, error: BaseException) -> bool:
        return is_missing_in_aws(error) or code_of(error) in self.row.reads[0].missing.split()

    def _in_use(self, error: BaseException) -> str | None:
        return str(error) if code_of(error) in self.row.in_use_codes else None

    # -- creation

    def _create_once(self, call: Call, inputs: Properties) -> tuple[Any, bool]:
        """Creates the resource, with a tag that marks the attempt. The mark depends on the resource and its inputs
        only. So the next attempt recognises and adopts a resource that a killed attempt created."""
        mark = hashlib.sha256(creation_seed(call, inputs).encode()).hexdigest()[:32]
        existing = None if call.anew else self._find_left_over(call, inputs, mark)
        if existing is not None:
            return existing, True
        was_there = self._may_overwrite(call, inputs)
        try:
            return self._create(call, inputs, mark), was_there
        except ProviderError as error:
            if code_of(error.__cause__) not in self.row.taken_codes:
                raise
            existing = None if call.anew else self._find_same_name(call, inputs, mark)
            if existing is not None:
                return existing, True
            name = inputs.get(self.row.named) if self.row.named else None
            remedy = self._name_taken_remedies(call, name, str(name)) if self.row.existing and name else error.remedy
            raise ProviderError(error.cause, remedy) from error.__cause__

    def _may_overwrite(self, call: Call, inputs: Properties) -> bool:
        """Whether the creation may overwrite an existing value, such as a bucket's policy."""
        if self.row.kind or self.row.create.operation.startswith("Create"):
            return False
        if any(inputs.get(name) is None for name in names_in(self.row.create.id)):
            return True
        return self._get(call, self.id_of({}, inputs), inputs) is not None

    def _collides(self, error: BaseException) -> bool:
        return code_of(error) in self.row.taken_codes | _COLLISIONS

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        shape = self.shape(self.row.create.operation)
        fixed = fill_template(self.row.create.fixed, self.template_values("", inputs))
        made = {**fixed, **self.creation(ParameterBuilder(self.row.renamed), inputs)}
        if self.row.tagging:
            tags = all_tags(self._session().default_tags, inputs)
            made |= tags_for(shape, self.row.kind, {**tags, ATTEMPT_TAG: mark})
        tokens = {*self._session().operation(self.row.service, self.row.create.operation).idempotent_members}
        tokens |= {"ClientToken"} & shape.members.keys()
        for life in range(_LIVES):
            token = hashlib.sha256(f"{mark}\n{life}".encode()).hexdigest()[:32]
            answer = self.write(call, inputs, self.row.create.operation, made | dict.fromkeys(tokens, token))
            model = search_path(self.row.create.created, answer) or {}
            # AWS remembers a client token longer than the resource, which others may have deleted.
            if not tokens or self._get(call, self.id_of(model, inputs), inputs) is not None:
                return model
        raise ProviderError(f"{call.name} was created and deleted {_LIVES} times within a day.", "Try again tomorrow.")

    def _find_left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        """The resource that a killed attempt created, for types without a name. It has the mark in a tag."""
        first = self.row.reads[0]
        # The parameter is `Filters`, or `Filter` in one operation.
        name = next((one for one in self.shape(first.operation).members if one.startswith("Filter")), None)
        if not self.row.kind or name is None:
            return None
        filters = {name: [{"Name": f"tag:{ATTEMPT_TAG}", "Values": [mark]}]}
        # The local AWS may ignore a filter, so the mark of each result is checked.
        every = first.at.removesuffix(" | [0]").removesuffix("[0]")
        listed = search_path(every, self.write(call, inputs, first.operation, filters)) or []
        marked = (one for one in listed if (to_pulumi(one, {}).get("tags") or {}).get(ATTEMPT_TAG) == mark)
        return next((one for one in marked if self.state_of(one) not in self.row.gone), None)

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """The resource that has the name, if a killed attempt for the same resource created it."""
        model = self._get(call, self.id_of({}, inputs), inputs)
        tags = to_pulumi(model, {}).get("tags") if model else {}
        return model if tags and tags.get(ATTEMPT_TAG) == mark else None

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        holder, live = self.holder, self.live(model)
        for change in self.row.changes:
            names = [name for name in change.inputs if not self.takes(holder, name)]
            wanted = {name: inputs[name] for name in names if inputs.get(name) not in (None, live.get(name))}
            if wanted:
                self._apply(call, id, change, wanted, {**model, **inputs})
        complete = self._get(call, id, inputs)
        return model if complete is None else complete

    # -- reading

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        first, *others = self.row.reads
        model = self._read(call, first, self.template_values(id, inputs))
        if not model or (state := self.state_of(model)) in self.row.gone:
            return None
        # While a resource becomes ready, this is called repeatedly, and only the first read is needed.
        for read in others if state is None or state in self.row.ready else ():
            values = {**self.template_values(id, inputs), **model}
            if not read.when or values.get(read.when):
                model |= self._read(call, read, values) or {}
        return model

    def _read(self, call: Call, read: Read, values: Properties) -> Any:
        def ask() -> Any:
            try:
                answer = self.ask(values, read.operation, fill_template(read.parameters, values))
                return search_path(fill_template(read.at, values), answer)
            except Exception as error:
                if is_missing_in_aws(error) or code_of(error) in read.missing.split():
                    return None
                raise

        return call_aws(call, f"Read {call.name}", ask)

    # -- changes

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        model = self._get(call, id, new) or {}
        live, left = {**model, **self.live(model)}, set(changed) - self.row.extra - {"tags", "tagsAll"}
        for change in self.row.changes:
            if touched := left & set(change.inputs):
                names = change.inputs if change.together else touched
                unset = self.row.unset
                wanted = {name: unset.get(name) if new.get(name) is None else new[name] for name in sorted(names)}
                self._undo(call, id, change, live)
                self._apply(call, id, change, wanted, {**live, **new})
                left -= touched
        for added in self.row.lists:
            if added.input in left:
                self._update_list(call, id, added, set(live.get(added.input) or ()), new)
                left.discard(added.input)
        if left:
            raise unchangeable_error(call, sorted(left))
        if {"tags", "tagsAll"} & set(changed):
            self._retag(call, id, live, new)

    def _apply(self, call: Call, id: str, change: Change, wanted: Properties, values: Properties) -> None:  # noqa: A002
        path = self.template_values(id, values)
        given = {name: value for name, value in wanted.items() if value is not None}
        if not given and not change.undo:
            raise unchangeable_error(call, sorted(wanted))
        if not given:
            if not change.exclusive:  # an exclusive value has been removed already
                self.write(call, values, change.undo, fill_template(_undo_of(change), path))
            return
        for one in [given] if change.together else [{name: given[name]} for name in given]:
            body = self.body_of(ParameterBuilder({**self.row.renamed, **change.names}), change, one)
            self.write(call, values, change.operation, {**fill_template(change.parameters, path), **body})

    def _undo(self, call: Call, id: str, change: Change, live: Properties) -> None:  # noqa: A002
        if change.exclusive and any(live.get(name) for name in change.inputs):
            self.write(call, live, change.undo, fill_template(_undo_of(change), self.template_values(id, live)))

    def _update_list(self, call: Call, id: str, added: ListChange, now: set[str], new: Properties) -> None:  # noqa: A002
        wanted = set(new.get(added.input) or ())
        lists = {added.add: sorted(wanted - now), added.remove: sorted(now - wanted)}
        given = {name: items for name, items in lists.items() if items}
        if given:
            path = fill_template(added.parameters, self.template_values(id, new))
            self.write(call, new, added.operation, {**path, **given})

    def _retag(self, call: Call, id: str, live: Properties, new: Properties) -> None:  # noqa: A002
        tagging = self.row.tagging
        if tagging is None:
            raise unchangeable_error(call, ["tags"])
        now, wanted = visible_tags(live.get("tags") or {}), all_tags(self._session().default_tags, new)
        path = fill_template(tagging.parameters, self.template_values(id, {**new, **live}))
        if gone := sorted(now.keys() - wanted.keys()):
            keys = [{"Key": key} for key in gone] if tagging.keys == "Tags" else gone
            self.write(call, new, tagging.untag, {**path, tagging.keys: keys})
        if more := {key: value for key, value in wanted.items() if now.get(key) != value}:
            shape = self.shape(tagging.tag).members[tagging.tags]
            self.write(call, new, tagging.tag, {**path, tagging.tags: ParameterBuilder().parameters(shape, more)})

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        exclusive = [change for change in self.row.changes if change.exclusive]
        model = (self._get(call, id, {**outputs, **inputs}) if exclusive else None) or {}
        for change in exclusive:
            self._undo(call, id, change, {**inputs, **model, **self.live(model)})
        for read in self.row.delete.before:
            self._read(call, read, self.template_values(id, {**outputs, **inputs}))
        super().delete(call, id, outputs, inputs)

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        parameters = fill_template(self.row.delete.parameters, self.template_values(id, inputs))
        self.ask(inputs, self.row.delete.operation, parameters)


def _undo_of(change: Change) -> Mapping[str, Any]:
    return change.parameters if change.undo_with is None else change.undo_with
