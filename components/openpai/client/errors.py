# SPDX-License-Identifier: Apache-2.0
"""What the cluster's refusals mean, and what to do about each."""

import http.client
import json
import re
import ssl
import urllib.error
from collections.abc import Mapping
from urllib.parse import urlsplit

from components.platform.calls import ProviderError
from launcher.escaping import terminal

GONE = frozenset({"NoJobError", "NoJobConfigError", "NoTaskError", "NoTaskLogError"})
TAKEN = "ConflictJobError"
_LONGEST_MESSAGE = 2000
# The hived scheduler has no code of its own for this.
_TOO_MUCH = re.compile(r"exceeds? maximum", re.IGNORECASE)
_REMEDIES: Mapping[str, str] = {
    "ForbiddenUserError": "The token's user may not do this. A job belongs to the user who submitted it; the "
    "cluster's administrators say who may use which virtual cluster.",
    "NoEnoughQuotaError": "The virtual cluster has not so much. Ask for less, use another one, or have its quota "
    "raised by an administrator.",
    "InvalidProtocolError": "The cluster's own rules go beyond the protocol's, or it is an older release. Its message "
    "names the place in the job: please tell us.",
    "NoJobError": "The job was never there, or the cluster has forgotten it: old jobs are removed after a while.",
    "NoApiError": "This release of OpenPAI does not have this part of the REST API; trainyard needs 1.3 or later.",
    "ReadOnlyJobError": "The cluster takes no changes of this job.",
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
# Of OpenSSL: what is wrong with a certificate whose authority is known.
_NOT_YET, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64
_OTHER = (
    "The portal's certificate is for another name. Write `uri` of `trainyard:cluster` with a name that the certificate "
    "has."
)
_TOO_OLD = "The portal's certificate is not valid at this time: is the clock right? Its administrators renew it."
_OF_CERTIFICATE = {_NOT_YET: _TOO_OLD, _EXPIRED: _TOO_OLD, _OTHER_NAME: _OTHER, _OTHER_ADDRESS: _OTHER}
_NO_TLS = "What answers there speaks no TLS that this machine knows. Is its address one with http://, or another port?"
_NOT_THERE = "Is `uri` the address of the web portal? The REST API is below it, at /rest-server."


class ApiError(Exception):
    """An answer that refuses. `code`: OpenPAI's, empty where another server answered."""

    def __init__(self, status: int, code: str, message: str, token_from: str = "", content_range: str = "") -> None:
        super().__init__(f"{code or f'status {status}'}: {message}".rstrip(": "))
        self.status, self.code, self.message, self.token_from = status, code, message, token_from
        self.content_range = content_range

    @property
    def remedy(self) -> str:
        if self.status == 401:
            return f"{_TOKEN} The token that counted was {self.token_from}." if self.token_from else _TOKEN
        if self.code == "InvalidProtocolError" and _TOO_MUCH.search(self.message):
            return _REMEDIES["NoEnoughQuotaError"]
        if self.status in (400, 404) and not self.code:
            return _NOT_THERE
        return _REMEDIES.get(self.code, "")


def refused_answer(status: int, body: bytes, token_from: str, content_range: str) -> ApiError:
    """The error in an answer. Proxies before the cluster answer with pages, which tell people nothing."""
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


def redirection(uri: str, target: str) -> ProviderError:
    parts = urlsplit(target)
    there = f"{parts.scheme}://{parts.netloc}" if parts.netloc else target
    return ProviderError(
        f"{uri} leads on to {terminal(there)}.",
        "A token is not sent on to another address. If that one is the cluster's, name it as `uri`.",
    )


def is_gone(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and error.code in GONE


def is_taken(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and (error.code == TAKEN or error.status == 409)


def is_network(error: BaseException) -> bool:
    """Whether there was no whole answer."""
    return isinstance(error, OSError | http.client.HTTPException)


def tls_remedy(error: BaseException) -> str | None:
    """What to do where TLS itself fails, however often it is tried. None for any other failure."""
    cause = getattr(error, "reason", None) if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _OF_CERTIFICATE.get(cause.verify_code, _UNTRUSTED)
    # The connection ended, as connections without TLS end.
    if not isinstance(cause, ssl.SSLError) or isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return None
    return _NO_TLS


def error_text(error: Exception) -> str:
    """The error in one line. The cluster repeats what people wrote, so it is escaped."""
    if isinstance(error, ApiError):
        return terminal(str(error).splitlines()[0])
    if isinstance(error, urllib.error.URLError):
        return terminal(f"no answer: {error.reason}".splitlines()[0])
    if is_network(error):
        return terminal(f"no answer: {str(error) or type(error).__name__}".splitlines()[0])
    return terminal(f"{type(error).__name__}: {error}".splitlines()[0])


def refusal(what: str, error: Exception, waited: float = 0.0) -> ProviderError:
    """An error for a person: what was tried, what the cluster answered, what to do."""
    if isinstance(error, ProviderError):
        return error
    if not (isinstance(error, ApiError) or is_network(error)):
        raise error
    after = f" (still after {waited:.0f} s)" if waited >= 1 else ""
    remedy = error.remedy if isinstance(error, ApiError) else tls_remedy(error) or _UNREACHABLE
    return ProviderError(f"{what}: {error_text(error)}{after}", remedy)
