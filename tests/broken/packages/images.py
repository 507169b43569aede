# SPDX-License-Identifier: Apache-2.0
"""Imports a module that PyTorch does not bring."""

import cv2  # type: ignore[import-not-found]

print(cv2.__version__)
