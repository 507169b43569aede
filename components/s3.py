# SPDX-License-Identifier: Apache-2.0
"""Calls of AWS: which errors are retried and for how long, what they mean for the user, and sessions.

A session finds endpoint, region and credentials as AWS's own clients find them (docs/contracts.md).
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from components.platform import calls
from components.platform.calls import Call, ProviderError
from launcher.escaping import terminal_line

T = TypeVar("T")

# AWS may return these codes while a new role or policy is not in force yet.
ACCESS_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "UnauthorizedAccess", "AuthorizationError"}
)
_CREDENTIALS_CODES = frozenset(
    {
        "AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId",
        "InvalidClientTokenId", "InvalidSignatureException", "MissingAuthenticationToken", "RequestExpired",
        "RequestTimeTooSkewed", "SignatureDoesNotMatch", "UnrecognizedClientException",
    }
)  # fmt: skip
_BUSY_CODES = frozenset(
    {
        "BandwidthLimitExceeded", "ConditionalRequestConflict", "EC2ThrottledException", "OperationAborted",
        "PriorRequestNotComplete", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException",
        "RequestTimeout", "RequestTimeoutException", "SlowDown", "Throttling", "ThrottledException",
        "ThrottlingException", "TooManyRequestsException",
    }
)  # fmt: skip
_BUSY_STATUSES = frozenset({500, 502, 503, 504})
# The service works, but has no free machine: a retry within seconds does not help.
CAPACITY_CODES = frozenset(
    {"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity"}
)
_LIMIT_CODES = frozenset({"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded"})
_REMEDIES = {
    **dict.fromkeys(
        _CREDENTIALS_CODES,
        "AWS does not accept these credentials: they are wrong or have expired, or this machine's clock is wrong. "
        "Try `aws sts get-caller-identity` with the same profile.",
    ),
    **dict.fromkeys(
        CAPACITY_CODES,
        "AWS has no free machine of this type in this zone now. Try later, use another zone, or reserve capacity.",
    ),
    **dict.fromkeys(
        _LIMIT_CODES,
        "The account's quota of vCPUs is used up. Ask for a higher one (Service Quotas: EC2, the row of this "
        "family of instances, On-Demand or Spot), or end instances that you no longer need.",
    ),
    "NoSuchBucket": "Somebody removed the bucket, or it is in another account or region. `up` makes it again.",
    "OptInRequired": "The account is not signed up for this service.",
    "InvalidInstanceID.NotFound": "Somebody terminated the instance. `up` makes it again.",
}
_PERFORM = re.compile(r"not authorized to perform: ([A-Za-z0-9-]+:[A-Za-z0-9]+)")
# EC2 adds an encoded message of several kilobytes. Decoding it needs a further permission.
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")
_UNREACHABLE = "AWS cannot be reached from here. Check the network, the region and AWS_ENDPOINT_URL."


def call_aws(call: Call, what: str, operation: Callable[[], T], access_minutes: float = 0.0) -> T:
    """Calls `operation`, and retries with backoff: while AWS is busy, and up to `access_minutes` while new access is
    not in force."""
    return calls.call_with_retries(_ERRORS, call, what, operation, access_minutes)


def list_aws_pages(
    call: Call, what: str, client: Any, operation: str, access_minutes: float = 0.0, **request: Any
) -> Iterator[Any]:
    """Every page of a list, by botocore's paginator. Each page is retried on its own."""
    paginator = client.get_paginator(operation)
    ask = getattr(client, operation)
    # A paginator cannot continue after an error, so the retries happen below it.
    paginator._method = lambda **page: call_aws(call, what, lambda: ask(**page), access_minutes)
    yield from paginator.paginate(**request)


def read_from_aws_if_exists(call: Call, what: str, operation: Callable[[], T], access_minutes: float = 0.0) -> T | None:
    """The answer of a read, or None if the resource does not exist."""

    def read() -> T | None:
        try:
            return operation()
        except Exception as error:
            if is_missing_in_aws(error):
                return None
            raise

    return call_aws(call, what, read, access_minutes)


def _error_response(error: BaseException | None) -> dict[str, Any]:
    """AWS's response. Empty if there was none: then botocore leaves the attribute out, or sets it to None."""
    response = getattr(error, "response", None)
    return response if isinstance(response, dict) else {}


def code_of(error: BaseException | None) -> str:
    """AWS's code of an error. Empty if AWS did not respond."""
    return str((_error_response(error).get("Error") or {}).get("Code") or "")


def status_of(error: BaseException | None) -> int:
    return int((_error_response(error).get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0)


def is_missing_in_aws(error: BaseException | None) -> bool:
    """Whether the response says that the resource does not exist. The code of a response without a body is its
    HTTP status."""
    code = code_of(error)
    return code in ("404", "NoSuchBucket", "NoSuchKey", "NoSuchEntity", "NoSuchUpload") or code.endswith(
        ("NotFound", "NotFoundException")
    )


def aws_error_text(error: Exception) -> str:
    """The error in one line, escaped for terminals: AWS repeats names that users chose."""
    code = code_of(error)
    if code:
        message = _ENCODED.sub("", str(error.response["Error"].get("Message") or ""))  # type: ignore[attr-defined]
        return terminal_line(f"{code}: {message}".rstrip(": "))
    if _is_network_error_of_botocore(error):
        return terminal_line(f"no answer: {error}".splitlines()[0])
    return terminal_line(f"{type(error).__name__}: {error}".splitlines()[0])


def aws_refusal(what: str, error: Exception, waited: float = 0.0) -> ProviderError:
    """Botocore's error as a message for the user: the operation, AWS's answer, the remedy."""
    if isinstance(error, ProviderError):
        return error
    if not (code_of(error) or _is_botocore(error) or _is_network_error_of_botocore(error)):
        raise error
    after = f" (still after {waited:.0f} s)" if waited >= 1 else ""
    metadata = _error_response(error).get("ResponseMetadata") or {}
    request = f" [request {metadata['RequestId']}]" if metadata.get("RequestId") else ""
    return ProviderError(f"{what}: {aws_error_text(error)}{after}{request}", _remedy_of_error(error))


def _remedy_of_error(error: Exception) -> str:
    code = code_of(error)
    if code in ACCESS_CODES:
        named = _PERFORM.search(str(error))
        action = named[1] if named else getattr(error, "operation_name", "this")
        return (
            f"These credentials may not do {action}. `trainyard access` prints the statements that the deployer and "
            "the users need, and which of them allows it."
        )
    if code:
        return _REMEDIES.get(code, "")
    return _UNREACHABLE if _is_network_error_of_botocore(error) else ""


def _aws_retry_seconds(error: Exception, access_minutes: float, patience: float) -> float:
    code = code_of(error)
    if code in ACCESS_CODES:
        return access_minutes * 60
    if code in CAPACITY_CODES:
        return 0.0
    if code in _BUSY_CODES or status_of(error) in _BUSY_STATUSES:
        # A call with no patience, such as a preview's, is not retried while the cloud is busy.
        return calls.TRANSIENT_SECONDS if patience else 0.0
    return patience if not code and _is_network_error_of_botocore(error) else 0.0


def _is_botocore(error: BaseException) -> bool:
    return any(base.__module__.split(".")[0] == "botocore" for base in type(error).__mro__)


def _is_network_error_of_botocore(error: BaseException) -> bool:
    names = {base.__name__ for base in type(error).__mro__}
    return isinstance(error, OSError) or (
        _is_botocore(error) and bool(names & {"ConnectionError", "HTTPClientError", "IncompleteReadError"})
    )


_ERRORS = calls.ErrorPolicy(_aws_retry_seconds, aws_error_text, aws_refusal)


# The order in which the names are tried, because AWS's own clients use different ones.
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_SECONDS_TO_CONNECT, _SECONDS_TO_READ = 10, 60
# Connections to one service: at most this many threads call it at once.
_CONNECTIONS = 64
_LOGIN = (
    "Make some with `aws configure` or `aws sso login`, or name a profile with AWS_PROFILE. "
    "For the local cloud, use --local, or the variables that `trainyard cloud env` prints."
)


@dataclass
class Session:
    """Botocore's clients for one set of credentials, made when first used.

    Without explicit values botocore reads its environment variables and files, as in every AWS client.
    """

    region: str | None = None
    profile: str | None = None
    config_file: str | None = None
    credentials_file: str | None = None
    endpoint: str | None = None
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    _botocore: Any = field(default=None, repr=False)
    _account: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> "Session":
        """Takes the provider's configuration first, then the environment, then AWS's defaults."""
        given = environment or {}
        variables = os.environ if environment is None else environment
        named = next((variables[name] for name in REGION_VARIABLES if variables.get(name)), None)
        return cls(
            region=config.get("region") or named,
            profile=config.get("profile") or given.get("AWS_PROFILE") or None,
            config_file=config.get("configFile") or variables.get("AWS_CONFIG_FILE"),
            credentials_file=variables.get("AWS_SHARED_CREDENTIALS_FILE"),
            # Botocore reads AWS_ENDPOINT_URL from the environment itself, and first the variables of single services.
            endpoint=config.get("endpoint") or given.get("AWS_ENDPOINT_URL"),
        )

    @property
    def region_name(self) -> str:
        """The region: the session's own, or the profile's."""
        with self._lock:
            region = self.region or self._opened().get_config_variable("region")
        if not region:
            raise ProviderError(
                "No AWS region is set.", "Set `aws:region` in the stack file, or the variable AWS_REGION."
            )
        return str(region)

    @property
    def account(self) -> str:
        """The account's id, which is looked up only once."""
        if not self._account:
            try:
                self._account = str(self.client("sts").get_caller_identity()["Account"])
            except Exception as error:
                raise aws_refusal("Ask AWS which account this is", error) from error
        return self._account

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of a service, by botocore's name for it, for `region` or for the session's region.

        Botocore's clients are thread-safe, its sessions are not: hence the lock.
        """
        with self._lock:
            key = (service, region or "")
            if key not in self._clients:
                self._clients[key] = self._make(service, region or self.region_name)
            return self._clients[key]

    def _make(self, service: str, region: str) -> Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=_SECONDS_TO_CONNECT,
            read_timeout=_SECONDS_TO_READ,
            max_pool_connections=_CONNECTIONS,
            # components.platform.calls retries instead: visibly, for a limited time, and until Ctrl-C.
            retries={"total_max_attempts": 1, "mode": "standard"},
            # Transfers send their own MD5. A second checksum would only cost time.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        try:
            made = self._opened().create_client(service, region_name=region, endpoint_url=self.endpoint, config=config)
        except BotoCoreError as error:
            raise self._unusable(error) from error
        if service == "s3control" and ".amazonaws." not in made.meta.endpoint_url:
            made.meta.events.register("before-sign.s3-control", _remove_account_from_host)
        return made

    def _opened(self) -> Any:
        """Botocore's session. The import takes a quarter of a second, so it is done here, when AWS is used."""
        import botocore.session
        from botocore.exceptions import BotoCoreError

        if self._botocore is None:
            opened = botocore.session.Session(profile=self.profile)
            files = {"config_file": self.config_file, "credentials_file": self.credentials_file}
            for name, file in files.items():
                if file:
                    opened.set_config_variable(name, file)
            try:
                if opened.get_credentials() is None:
                    raise ProviderError("No credentials for AWS were found.", _LOGIN)
            except BotoCoreError as error:
                raise self._unusable(error) from error
            self._botocore = opened
        return self._botocore

    def _unusable(self, error: Exception) -> ProviderError:
        return ProviderError(f"No usable credentials for AWS: {error}", _LOGIN)


def _remove_account_from_host(request: Any, **_: Any) -> None:
    """Removes the account that botocore puts before the host of S3 Control: with it, the local address is invalid."""
    account = f"//{request.headers['x-amz-account-id']}."
    request.url = request.url.replace(account, "//", 1)
