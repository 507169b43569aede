# SPDX-License-Identifier: Apache-2.0
"""`trainyard image`: the images that a stack's jobs name, built and pushed."""
