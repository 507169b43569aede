# SPDX-License-Identifier: Apache-2.0
"""Route tables with their routes, routes as separate resources, and associations of subnets and addresses."""

from collections.abc import Mapping
from typing import Any

from components.platform.calls import Call, InputFailure
from components.platform.values import Properties
from localcloud.aws.plugin.shapes import ParameterBuilder, member_of
from localcloud.aws.plugin.table import AwsResource

# Property of a route -> the API's member, where the names differ.
_INLINE = {
    "cidrBlock": "DestinationCidrBlock",
    "ipv6CidrBlock": "DestinationIpv6CidrBlock",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
}
_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")


def destination_of(route: Mapping[str, Any]) -> str:
    return str(next((route[name] for name in _DESTINATIONS if route.get(name)), ""))


def _is_own(route: Mapping[str, Any]) -> bool:
    """Whether a user created the route. The local route, and those of endpoints and gateways, do not count."""
    added = str(route.get("GatewayId") or "").startswith("vpce-") and route.get("DestinationPrefixListId")
    return route.get("GatewayId") != "local" and route.get("Origin", "CreateRoute") == "CreateRoute" and not added


class RouteTableResource(AwsResource):
    """A route table with its routes. If the program gives no routes, they stay unchanged."""

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        builder = ParameterBuilder({f"routes.{key}": member for key, member in _INLINE.items()})
        routes = inputs.get("routes")
        shape = self.shape("CreateRoute")
        for number, route in enumerate(routes if isinstance(routes, list) else []):
            if isinstance(route, Mapping):
                for key, value in route.items():
                    self._validate_route(builder, shape, key, value, f"routes[{number}].{key}")
        return [*super().validate_inputs(inputs), *builder.failures]

    def _validate_route(self, builder: ParameterBuilder, shape: Any, key: str, value: Any, path: str) -> None:
        member = member_of(shape, key, _INLINE.get(key, ""))
        if member is None:
            builder.failures.append(InputFailure(path, "there is no such property"))
        else:
            builder.parameters(shape.members[member], value, path)

    def live(self, model: Properties) -> Properties:
        names = {member: key for key, member in _INLINE.items()}
        routes = [
            {names.get(key, key[:1].lower() + key[1:]): value for key, value in route.items()
             if key not in ("State", "Origin", "InstanceOwnerId")}
            for route in model.get("Routes") or () if _is_own(route)
        ]  # fmt: skip
        return {**super().live(model), "routes": routes}

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        self._routes(call, id, inputs)
        return self._get(call, id, inputs)

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if "routes" in changed:
            self._routes(call, id, new)
        super()._update(call, id, changed, new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        table = self._get(call, id, {**outputs, **inputs}) or {}
        for one in table.get("Associations") or ():
            if not one.get("Main"):
                gone = {"AssociationId": one["RouteTableAssociationId"]}
                self.write(call, {**outputs, **inputs}, "DisassociateRouteTable", gone)
        super().delete(call, id, outputs, inputs)

    def _routes(self, call: Call, id: str, new: Properties) -> None:  # noqa: A002
        """Changes the table's routes to those of the program. Equal routes stay unchanged."""
        existing = (self._get(call, id, new) or {}).get("Routes") or ()
        live = {destination_of(one): one for one in existing if _is_own(one)}
        shape = self.shape("CreateRoute")
        wanted = {}
        for route in new.get("routes") or ():
            made = {member_of(shape, key, _INLINE.get(key, "")) or key: value for key, value in route.items() if value}
            wanted[destination_of(made)] = made
        for destination, route in live.items():
            if destination not in wanted:
                gone = {name: route[name] for name in _DESTINATIONS if route.get(name)}
                self.write(call, new, "DeleteRoute", {"RouteTableId": id, **gone})
        for destination, route in wanted.items():
            now = live.get(destination)
            if now is None or any(now.get(key) != value for key, value in route.items()):
                self.write(call, new, "ReplaceRoute" if now else "CreateRoute", {"RouteTableId": id, **route})


class RouteResource(AwsResource):
    """A route. Its id consists of its table and its destination."""

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        table, _, destination = id.partition("_")
        version6, prefixes = ":" in destination, destination.startswith("pl-")
        key = "destinationPrefixListId" if prefixes else f"destination{'Ipv6' if version6 else ''}CidrBlock"
        return {"routeTableId": table, key: destination} if destination else {}

    def id_of(self, model: Any, inputs: Properties) -> str:
        keys = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
        destination = next((inputs[key] for key in keys if inputs.get(key)), "")
        return f"{inputs['routeTableId']}_{destination}"

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        table, given = super()._get(call, id, inputs), self.parse_id(id)
        wanted = next(value for key, value in given.items() if key != "routeTableId")
        routes = (table or {}).get("Routes") or ()
        return next((route for route in routes if destination_of(route) == wanted and _is_own(route)), None)

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """An existing route to the same target. Routes have no tags, so any such route may be that of a killed
        attempt."""
        existing = self._get(call, self.id_of({}, inputs), inputs)
        wanted = self.creation(ParameterBuilder(self.row.renamed), inputs)
        same = existing and all(existing.get(key) == value for key, value in wanted.items() if key != "RouteTableId")
        return existing if same else None

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        self.write(call, new, "ReplaceRoute", self.creation(ParameterBuilder(self.row.renamed), new))

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        parts = self.parse_id(id)
        self.ask(inputs, "DeleteRoute", {key[:1].upper() + key[1:]: value for key, value in parts.items()})


class TableAssociationResource(AwsResource):
    """The association of a subnet with a route table. It is read by the subnet, because its id changes with the
    table."""

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        """The form in which the real provider imports one: `subnet-…/rtb-…`."""
        subnet, slash, table = id.partition("/")
        return {"subnetId": subnet, "routeTableId": table} if slash and subnet.startswith("subnet-") else {}

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        listed = self.write(call, inputs, "DescribeRouteTables", {"Filters": self._filters(id, inputs)})
        associations = [one for table in listed["RouteTables"] for one in table.get("Associations") or ()]
        return next((one for one in associations if self._is_ours(one, id, inputs)), None)

    def _filters(self, id: str, inputs: Properties) -> list[Properties]:  # noqa: A002
        if inputs.get("subnetId"):
            return [{"Name": "association.subnet-id", "Values": [inputs["subnetId"]]}]
        if inputs.get("gatewayId"):
            return []
        return [{"Name": "association.route-table-association-id", "Values": [id]}]

    def _is_ours(self, association: Mapping[str, Any], id: str, inputs: Properties) -> bool:  # noqa: A002
        for key in ("subnetId", "gatewayId"):
            if inputs.get(key):
                return bool(association.get(key[:1].upper() + key[1:]) == inputs[key])
        return bool(association.get("RouteTableAssociationId") == id)

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(model.get("AssociationId") or model["RouteTableAssociationId"])

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        existing = self._get(call, "", inputs)
        return existing if existing and existing.get("RouteTableId") == inputs["routeTableId"] else None

    def _find_left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        return self._find_same_name(call, inputs, mark)

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        live = self._get(call, id, new) or {}
        wanted = {"AssociationId": live.get("RouteTableAssociationId", id), "RouteTableId": new["routeTableId"]}
        self.write(call, new, "ReplaceRouteTableAssociation", wanted)

    def _delete_and_wait(self, call: Call, id: str, known: Properties) -> None:  # noqa: A002
        live = self._get(call, id, known)
        if live is not None:
            super()._delete_and_wait(call, str(live["RouteTableAssociationId"]), known)


_TARGETS = {"instanceId": "InstanceId", "networkInterfaceId": "NetworkInterfaceId"}


class AddressAssociationResource(AwsResource):
    """The association of an elastic IP with an instance. It has no tags, so an existing one with this target is
    adopted."""

    def _find_left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        if not inputs.get("allocationId"):
            return None
        listed = self.write(call, inputs, "DescribeAddresses", {"AllocationIds": [inputs["allocationId"]]})
        existing: Properties = next((one for one in listed["Addresses"] if one.get("AssociationId")), {})
        wanted = {member: inputs[key] for key, member in _TARGETS.items() if inputs.get(key)}
        return existing if wanted and wanted.items() <= existing.items() else None
