# SPDX-License-Identifier: Apache-2.0
"""The local AWS: checks signatures and access, has moto execute calls, and saves moto's state. One thread uses it."""

from __future__ import annotations

import io
import logging
import sys
import traceback
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from components.aws.iam.decide import AwsPrincipal
from localcloud.aws import account, identities, sigv4
from localcloud.aws.access.decisions import AwsRecord, authorize_aws_call, ec2_may_assume
from localcloud.aws.additions import add_own_operations, install_additions
from localcloud.aws.additions.capacity import instances_after_their_blocks
from localcloud.aws.additions.launches import terminate_after_blocks
from localcloud.aws.additions.outside import Outside
from localcloud.aws.aws_errors import Reason, RefusalError, refusal_reply
from localcloud.aws.border.requests import parse_aws_call, write_request
from localcloud.aws.calls import AwsCall, RawCall
from localcloud.aws.kept import S3Object, SavedState, used_backends
from localcloud.aws.launch_templates import with_launch_template
from localcloud.aws.metadata import SESSION_SECONDS, Metadata
from localcloud.aws.refusals import refuse_by_aws_rules
from localcloud.aws.services import Wire
from localcloud.server.http import Reply, Request

log = logging.getLogger("localcloud")
_PRESERVED = "moto.preserved_header_names"
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Simulation:
    """moto with signatures, access control and saved state. Its constructor imports moto, which takes a second."""

    def __init__(self, home: Path, endpoint: str, outside: Outside, record: AwsRecord) -> None:
        self._apps = MotoApps(endpoint)
        self._outside = outside
        self._record = record
        self._metadata = Metadata(
            home, ec2_may_assume, lambda: outside.session_seconds() or SESSION_SECONDS, outside.spot_notice
        )
        outside.metadata_path = self._metadata.path_of
        self._people = account.load_keys(home)
        install_additions(outside)
        self._saved = SavedState(account.aws_folder(home))
        self._begin()
        self._saved.save()

    def _begin(self) -> None:
        """Loads the state from disk, and adds what a new account has."""
        self._saved.load()
        identities.add_managed_policies()
        identities.add_people(self._people)

    def principal(self, request: Request, signed: sigv4.SignedRequest, digest: str | None) -> AwsPrincipal:
        """The principal that signed a request. Refuses an invalid signature."""
        sigv4.check_freshness(signed)
        key = identities.find_access_key(signed.key_id)
        if key.token != signed.token:
            # A temporary key is known only together with its token.
            reason = Reason.BAD_TOKEN if signed.token else Reason.UNKNOWN_KEY
            raise RefusalError(reason, "The security token included in the request is invalid")
        sigv4.verify_sigv4(request, signed, key.secret, digest)
        return key.principal

    def answer(self, raw: RawCall, key_id: str, caller: AwsPrincipal) -> tuple[Reply, str]:
        """Checks and executes a call whose signature is valid. Returns the reply, and its summary for the log."""
        if ending := instances_after_their_blocks():
            self.change(lambda: terminate_after_blocks(ending))
        call = with_launch_template(parse_aws_call(raw))
        authorize_aws_call(call, caller, self._record)
        refuse_by_aws_rules(call, caller)
        reply = self._carry_out(call, key_id)
        if call.writes and reply.status < 400:
            self.settle(objects_named(call))
        elif call.writes and self._saved.has_changed(used_backends, objects_named(call)):
            self._roll_back()  # moto may refuse a call when it has carried out a part of it
        return reply, f"{call.name} by {caller.name}"

    def change(self, work: Callable[[], object]) -> None:
        """Makes and saves a change that is no call."""
        used_backends.clear()
        work()
        self.settle()

    def metadata(self, request: Request) -> tuple[Reply, str]:
        """The reply of the instance metadata service. The request's path identifies the instance."""
        used_backends.clear()
        answer = self._metadata.answer(request)
        if request.method == "GET" and "/iam/security-credentials/" in request.path:
            self.settle()  # new credentials must be valid after a restart
        return answer

    def settle(self, touched: Collection[S3Object] | None = ()) -> None:
        """Saves the changes of the backends that were used, then runs the deferred calls of the hosts."""
        try:
            self._saved.save(used_backends, touched)
        except BaseException:
            self._roll_back()
            raise
        self._outside.run_deferred()

    def _roll_back(self) -> None:
        """Discards all changes since the last save, so that a failed call has no effect."""
        self._outside.drop_deferred()
        self._begin()

    def close(self) -> None:
        self._saved.close()

    def _carry_out(self, call: AwsCall, key_id: str) -> Reply:
        self._outside.drop_deferred()
        used_backends.clear()
        try:
            reply = self._apps.ask(call, key_id)
            if reply.status >= 400:
                self._outside.drop_deferred()
            if call.service.prefix == "ec2" and call.writes and reply.status < 400:
                self._outside.defer(self._outside.machines.network_changed)
            return reply
        except NotImplementedError as lack:
            lacking = str(lack).partition(" for ")[0]
            what = f"t{lacking[1:]} of {call.name}" if lacking.startswith("The ") else call.name
            raise RefusalError(Reason.UNKNOWN_OPERATION, f"The local AWS does not implement {what}") from None
        except RefusalError:  # our operations refuse before they change anything
            raise
        except Exception as problem:
            # Hostile input may make moto fail. One line of the log says where; a traceback for each would flood it.
            place = traceback.extract_tb(problem.__traceback__)[-1]
            log.error("%s failed at %s:%s: %r", call.name, Path(place.filename).name, place.lineno, problem)
            self._roll_back()
            return refusal_reply(RefusalError(Reason.BROKEN, f"The local AWS failed at {call.name}"), call.service)


def objects_named(call: AwsCall) -> Collection[S3Object] | None:
    """The objects of S3 that a call may change. None means any: for the deletion of a bucket."""
    if call.service.prefix != "s3":
        return ()
    bucket = call.text("Bucket")
    if call.operation == "DeleteBucket":
        return None
    if call.operation == "DeleteObjects":
        return {(bucket, str(one["Key"])) for one in call.document["Objects"]}
    return {(bucket, call.text("Key"))} if call.text("Key") else ()


class MotoApps:
    """moto's WSGI applications, one for each service, called without a socket. The first call of a service creates its
    application."""

    def __init__(self, endpoint: str) -> None:
        self._host = urlsplit(endpoint).netloc
        self._apps: dict[str, Wsgi] = {}

    def ask(self, call: AwsCall, key_id: str) -> Reply:
        """Calls moto and returns its reply. Exceptions of its handlers are passed on."""
        app = self._app(call.backend)
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], why: Any = None) -> Callable[[bytes], object]:
            heads.append((status, headers))
            return lambda data: None

        parts = app(self._environ(call, key_id), start)
        content = b"".join(parts)
        status, headers = heads[-1]
        reply_headers = {name.lower(): value for name, value in headers if name.lower() not in ("connection", "date")}
        if not call.operation.startswith("Head"):
            reply_headers["content-length"] = str(len(content))
        code = int(status.split()[0])
        if call.service.wire is Wire.JSON and 400 < code < 500:
            code = 400  # services that speak JSON have no other status for what a client did wrong
        return Reply(code, headers=reply_headers, content=content)

    def _app(self, backend: str) -> Wsgi:
        if backend not in self._apps:
            from moto.moto_server import werkzeug_app

            # With CORS, any web page could read replies.
            werkzeug_app.DISABLE_GLOBAL_CORS = True
            self._apps[backend] = app = werkzeug_app.create_backend_app(backend)
            for view in app.view_functions.values():
                responses = getattr(view.callback, "__self__", None)
                if isinstance(responses, type):
                    view.callback = getattr(add_own_operations(responses), view.callback.__name__)
        return self._apps[backend]

    def _environ(self, call: AwsCall, key_id: str) -> dict[str, Any]:
        request = write_request(call)
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
            if "_" in name:  # WSGI does not distinguish `_` from `-` in header names
                environ[_PRESERVED][key] = name
        length = str(len(request.body))
        environ |= {"CONTENT_LENGTH": length, "HTTP_HOST": self._host, "HTTP_X_MOTO_ACCOUNT_ID": account.ACCOUNT}
        # moto reads the key id and the region from this header. It is also set if the signature was in the query.
        scope = f"{key_id}/20000101/{call.region}/{call.service.signing}/aws4_request"
        environ["HTTP_AUTHORIZATION"] = f"{sigv4.ALGORITHM} Credential={scope}, SignedHeaders=host, Signature=0"
        environ["HTTP_USER_AGENT"] = "aws"  # moto would read a region from the client's header
        return environ
