# SPDX-License-Identifier: Apache-2.0
"""Explains the cluster's refusals, with a remedy for each."""

import http.client
import json
import re
import ssl
import urllib.error
from collections.abc import Mapping
from urllib.parse import urlsplit

from components.platform.calls import ProviderError
from launcher.escaping import terminal_line

GONE = frozenset({"NoJobError", "NoJobConfigError", "NoTaskError", "NoTaskLogError"})
TAKEN = "ConflictJobError"
_LONGEST_MESSAGE = 2000
# The hived scheduler has no error code for this.
_TOO_MUCH = re.compile(r"exceeds? maximum", re.IGNORECASE)
_REMEDIES: Mapping[str, str] = {
    "ForbiddenUserError": "The token's user may not do this. A job belongs to the user who submitted it; the "
    "cluster's administrators say who may use which virtual cluster.",
    "NoEnoughQuotaError": "The virtual cluster does not have that much. Request less, use another one, or have its "
    "quota raised by an administrator.",
    "InvalidProtocolError": "The cluster's own rules go beyond the protocol's, or it is an older release. Its message "
    "names the place in the job: please tell us.",
    "NoJobError": "The job never existed, or the cluster has removed it, as it does with old jobs.",
    "NoApiError": "This release of OpenPAI does not have this part of the REST API; trainyard needs 1.3 or later.",
    "ReadOnlyJobError": "The cluster accepts no changes to this job.",
}
_TOKEN = (
    "The token was refused: it is wrong, was revoked or has expired. Make another one in the web portal (your profile, "
    "Tokens), and set OPENPAI_TOKEN."
)
_UNREACHABLE = "The cluster cannot be reached from here. Check `uri` of `trainyard:cluster`, the network and its VPN."
_UNTRUSTED = (
    "No authority that this machine trusts has signed the portal's certificate. If the cluster has its own authority, "
    "name its file in `certificate` of `trainyard:cluster`."
)
# OpenSSL's codes for an invalid certificate of a known authority.
_NOT_YET, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64
_OTHER = (
    "The portal's certificate is for another name. Write `uri` of `trainyard:cluster` with a name that the certificate "
    "has."
)
_TOO_OLD = "The portal's certificate is not valid at this time: is the clock right? Its administrators renew it."
_OF_CERTIFICATE = {_NOT_YET: _TOO_OLD, _EXPIRED: _TOO_OLD, _OTHER_NAME: _OTHER, _OTHER_ADDRESS: _OTHER}
_NO_TLS = (
    "The server there does not use TLS, or no version that this machine supports. "
    "Does its address begin with http://, or have another port?"
)
_NOT_THERE = "Is `uri` the address of the web portal? The REST API is below it, at /rest-server."


class ApiError(Exception):
    """A response with an error. `code`: OpenPAI's, or empty if another server answered."""

    def __init__(self, status: int, code: str, message: str, token_from: str = "", content_range: str = "") -> None:
        super().__init__(f"{code or f'status {status}'}: {message}".rstrip(": "))
        self.status, self.code, self.message, self.token_from = status, code, message, token_from
        self.content_range = content_range

    @property
    def remedy(self) -> str:
        if self.status == 401:
            return f"{_TOKEN} The token in use was {self.token_from}." if self.token_from else _TOKEN
        if self.code == "InvalidProtocolError" and _TOO_MUCH.search(self.message):
            return _REMEDIES["NoEnoughQuotaError"]
        if self.status in (400, 404) and not self.code:
            return _NOT_THERE
        return _REMEDIES.get(self.code, "")


def refused_answer(status: int, body: bytes, token_from: str, content_range: str) -> ApiError:
    """The error in a response. Proxies respond with HTML pages, which are left out because they do not help people."""
    reason = http.client.responses.get(status, "")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, Mapping):
        return ApiError(status, "", reason, token_from, content_range)
    code, message = content.get("code"), content.get("message")
    words = message if isinstance(message, str) and message else reason
    return ApiError(status, code if isinstance(code, str) else "", words[:_LONGEST_MESSAGE], token_from)


def redirection_error(uri: str, target: str) -> ProviderError:
    parts = urlsplit(target)
    there = f"{parts.scheme}://{parts.netloc}" if parts.netloc else target
    return ProviderError(
        f"{uri} redirects to {terminal_line(there)}.",
        "The token is not sent to another address. If that address is the cluster's, write it as `uri`.",
    )


def is_gone_from_cluster(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and error.code in GONE


def is_taken(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and (error.code == TAKEN or error.status == 409)


def is_network(error: BaseException) -> bool:
    """Whether the network failed before a whole response arrived."""
    return isinstance(error, OSError | http.client.HTTPException)


def tls_remedy(error: BaseException) -> str | None:
    """The remedy for an error of TLS itself, for which retries are useless. None for other errors."""
    cause = getattr(error, "reason", None) if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _OF_CERTIFICATE.get(cause.verify_code, _UNTRUSTED)
    # A server without TLS ends the connection like this.
    if not isinstance(cause, ssl.SSLError) or isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return None
    return _NO_TLS


def cluster_error_text(error: Exception) -> str:
    """The error in one line. It is escaped, because the cluster repeats texts of users."""
    if isinstance(error, ApiError):
        return terminal_line(str(error).splitlines()[0])
    if isinstance(error, urllib.error.URLError):
        return terminal_line(f"no answer: {error.reason}".splitlines()[0])
    if is_network(error):
        return terminal_line(f"no answer: {str(error) or type(error).__name__}".splitlines()[0])
    return terminal_line(f"{type(error).__name__}: {error}".splitlines()[0])


def cluster_refusal(what: str, error: Exception, waited: float = 0.0) -> ProviderError:
    """The error for people: what was attempted, the cluster's response, and the remedy."""
    if isinstance(error, ProviderError):
        return error
    if not (isinstance(error, ApiError) or is_network(error)):
        raise error
    after = f" (still after {waited:.0f} s)" if waited >= 1 else ""
    remedy = error.remedy if isinstance(error, ApiError) else tls_remedy(error) or _UNREACHABLE
    return ProviderError(f"{what}: {cluster_error_text(error)}{after}", remedy)
