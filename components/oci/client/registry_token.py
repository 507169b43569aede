# SPDX-License-Identifier: Apache-2.0
"""A short-lived token of OCI's registry, for whoever has an API key."""

from __future__ import annotations

from components.oci.client.session import Session
from components.platform.errors import ProviderError
from components.platform.image_errors import ImageError
from components.platform.images import Endpoint

# OCIR's own: a signed request for a token, and the user whose password it is.
TOKEN_PATH = "/20180419/docker/token"
TOKEN_USER = "BEARER_TOKEN"
_SECONDS = (10.0, 60.0)


def token(session: Session, place: Endpoint) -> str:
    """A token of the registry for whoever the session acts as."""
    try:
        base = session.client("artifacts").base_client
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy}") from None
    try:
        answer = base.session.get(f"{place.url}{TOKEN_PATH}", auth=base.signer, timeout=_SECONDS)
        token_text = answer.json().get("token", "") if answer.status_code == 200 else ""
    except (OSError, ValueError) as error:
        raise ImageError(f"{place.host} cannot be asked for a token: {error}\nCheck the network or the proxy") from None
    if not token_text:
        raise ImageError(
            f"{place.host} gave no token: it answered {answer.status_code}\nCheck that the API key is the tenancy's"
        )
    return str(token_text)
