# SPDX-License-Identifier: Apache-2.0
"""Calls moto's WSGI applications directly, without a socket."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions import with_ours
from localcloud.aws.border.written import written
from localcloud.aws.calls import AwsCall
from localcloud.aws.sigv4 import ALGORITHM
from localcloud.server.http import Reply

_PRESERVED = "moto.preserved_header_names"
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MotoApps:
    """moto's applications, one for each service. Each is made when it is first used."""

    def __init__(self, endpoint: str) -> None:
        self._host = urlsplit(endpoint).netloc
        self._apps: dict[str, Wsgi] = {}

    def ask(self, call: AwsCall, key_id: str) -> Reply:
        """Calls moto and returns its answer. Exceptions of its handlers are passed on."""
        app = self._app(call.backend)
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], why: Any = None) -> Callable[[bytes], object]:
            heads.append((status, headers))
            return lambda data: None

        parts = app(self._environ(call, key_id), start)
        content = b"".join(parts)
        status, headers = heads[-1]
        kept = {name.lower(): value for name, value in headers if name.lower() not in ("connection", "date")}
        if not call.operation.startswith("Head"):
            kept["content-length"] = str(len(content))
        return Reply(int(status.split()[0]), headers=kept, content=content)

    def _app(self, backend: str) -> Wsgi:
        if backend not in self._apps:
            from moto.moto_server import werkzeug_app

            # Otherwise any web page could read answers.
            werkzeug_app.DISABLE_GLOBAL_CORS = True
            self._apps[backend] = app = werkzeug_app.create_backend_app(backend)
            for view in app.view_functions.values():
                responses = getattr(view.callback, "__self__", None)
                if isinstance(responses, type):
                    view.callback = getattr(with_ours(responses), view.callback.__name__)
        return self._apps[backend]

    def _environ(self, call: AwsCall, key_id: str) -> dict[str, Any]:
        request = written(call)
        target = f"{request.path}?{request.query}" if request.query else request.path
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method, "PATH_INFO": unquote(request.path, "latin-1"), "RAW_URI": target,
            "REQUEST_URI": target, "QUERY_STRING": request.query, "SCRIPT_NAME": "",
            "SERVER_NAME": self._host.partition(":")[0], "SERVER_PORT": self._host.partition(":")[2] or "80",
            "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(request.body), "wsgi.errors": sys.stderr, "wsgi.multithread": False,
            "wsgi.multiprocess": False, "wsgi.run_once": False, "wsgi.input_terminated": True, _PRESERVED: {},
        }  # fmt: skip
        for name, value in request.headers.items():
            folded = name.upper().replace("-", "_")
            key = folded if folded == "CONTENT_TYPE" else f"HTTP_{folded}"
            environ[key] = value
            if "_" in name:  # WSGI does not distinguish `_` and `-` in names
                environ[_PRESERVED][key] = name
        length = str(len(request.body))
        environ |= {"CONTENT_LENGTH": length, "HTTP_HOST": self._host, "HTTP_X_MOTO_ACCOUNT_ID": ACCOUNT}
        # moto reads key and region from this header, so it is set also if the signature was in the query.
        scope = f"{key_id}/20000101/{call.region}/{call.service.signing}/aws4_request"
        environ["HTTP_AUTHORIZATION"] = f"{ALGORITHM} Credential={scope}, SignedHeaders=host, Signature=0"
        environ["HTTP_USER_AGENT"] = "aws"  # moto reads a region from the client's own header
        return environ
