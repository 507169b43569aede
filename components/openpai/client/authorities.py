# SPDX-License-Identifier: Apache-2.0
"""Whom a call trusts: the machine's authorities, and beside them the cluster's own."""

import ssl
from pathlib import Path

from components.platform.errors import ProviderError

_BEGIN = "-----BEGIN"
_REMEDY = "Give certificates in PEM, or the path of a file with them."


def trust(certificate: str) -> ssl.SSLContext:
    """`certificate`: PEM, or the path of a file with it. Raises ProviderError."""
    context = ssl.create_default_context()
    if not certificate:
        return context
    try:
        # Bundles have comments before and between the certificates, in any language.
        text = certificate if _BEGIN in certificate else Path(certificate).read_text("utf-8", "replace")
        context.load_verify_locations(cadata=text.encode("ascii", "replace").decode())
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ProviderError(f"The authorities in `certificate` cannot be read: {error}", _REMEDY) from error
    # From Python 3.13 on, authorities need extensions that many of a company's own do not have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
