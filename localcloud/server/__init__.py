# SPDX-License-Identifier: Apache-2.0
"""The part of the local cloud that knows no platform: HTTP, routing by tables, handling of errors, faults, state."""
