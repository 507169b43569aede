# SPDX-License-Identifier: Apache-2.0
"""What keeps an image from being built or pushed."""

from __future__ import annotations


class ImageError(Exception):
    """Its text is for people; the second line says what to do."""
