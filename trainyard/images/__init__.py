# SPDX-License-Identifier: Apache-2.0
"""Builds and pushes the images that a stack's jobs name, with docker, podman or buildah."""
