# SPDX-License-Identifier: Apache-2.0
"""One request into moto, and its answer out again: WSGI without a socket."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

from localcloud.api.http import Reply
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire
from localcloud.aws.sigv4 import ALGORITHM

_PRESERVED = "moto.preserved_header_names"
_METADATA = "x-amz-meta-"
# Where the call that was judged stands in moto's request.
OPERATION = "trainyard.call"
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MotoApps:
    """moto's applications, one for each service, made when it is first used."""

    def __init__(self, endpoint: str) -> None:
        self._host = urlsplit(endpoint).netloc
        self._apps: dict[str, Wsgi] = {}

    def ask(self, call: AwsCall, key_id: str) -> Reply:
        """moto's answer. What a handler raises, this raises."""
        app = self._app(call.backend)
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], why: Any = None) -> Callable[[bytes], object]:
            heads.append((status, headers))
            return lambda data: None

        parts = app(self._environ(call, key_id), start)
        content = b"".join(parts)
        status, headers = heads[-1]
        kept = {name.lower(): value for name, value in headers if name.lower() not in ("connection", "date")}
        if call.request.method != "HEAD":
            kept["content-length"] = str(len(content))
        return Reply(int(status.split()[0]), headers=kept, content=content)

    def _app(self, backend: str) -> Wsgi:
        if backend not in self._apps:
            from moto.moto_server import werkzeug_app

            # A web page must not be able to read anything here.
            werkzeug_app.DISABLE_GLOBAL_CORS = True
            self._apps[backend] = werkzeug_app.create_backend_app(backend)
        return self._apps[backend]

    def _environ(self, call: AwsCall, key_id: str) -> dict[str, Any]:
        request = call.request
        path, _, query = request.target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method, "PATH_INFO": unquote(path, "latin-1"), "RAW_URI": request.target,
            "REQUEST_URI": request.target, "QUERY_STRING": query, "SCRIPT_NAME": "",
            "SERVER_NAME": self._host.partition(":")[0], "SERVER_PORT": self._host.partition(":")[2] or "80",
            "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(call.body), "wsgi.errors": sys.stderr, "wsgi.multithread": False,
            "wsgi.multiprocess": False, "wsgi.run_once": False, "wsgi.input_terminated": True, _PRESERVED: {},
            OPERATION: call,
        }  # fmt: skip
        for name, value in request.headers.items():
            # WSGI folds both signs into one, so one header could pretend to be another.
            if "_" in name and not name.startswith(_METADATA):
                continue
            if name.startswith("x-moto") or name in ("transfer-encoding", "expect", "connection"):
                continue
            folded = name.upper().replace("-", "_")
            key = folded if folded in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{folded}"
            environ[key] = value
            if "_" in name:
                environ[_PRESERVED][key] = name
        environ |= {"CONTENT_LENGTH": str(len(call.body)), "HTTP_HOST": self._host, "HTTP_X_MOTO_ACCOUNT_ID": ACCOUNT}
        # moto reads key and region from here, also for a request that was signed in its query.
        scope = f"{key_id}/20000101/{call.region}/{call.service.signing}/aws4_request"
        environ["HTTP_AUTHORIZATION"] = f"{ALGORITHM} Credential={scope}, SignedHeaders=host, Signature=0"
        environ["HTTP_USER_AGENT"] = "aws"  # moto would read a region from it
        return environ


def carry_out_what_was_judged() -> None:
    """Makes moto's handlers run the operation that was judged. By itself moto would take an `Action` from the query or
    from any text in a body, and parameters of a JSON call from a text in it."""
    from moto.core.responses import BaseResponse

    get_action, setup = BaseResponse._get_action, BaseResponse.setup_class

    def action(self: Any) -> Any:
        call = self.normalized_request.environ.get(OPERATION)
        return get_action(self) if call is None or call.service.wire is Wire.S3 else call.operation

    def setup_class(self: Any, request: Any, *args: Any, **named: Any) -> None:
        setup(self, request, *args, **named)
        call = self.normalized_request.environ.get(OPERATION)
        if call is not None and call.service.wire is Wire.JSON:
            self.querystring = self.data = {}

    BaseResponse._get_action, BaseResponse.setup_class = action, setup_class
