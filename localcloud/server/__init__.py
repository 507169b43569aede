# SPDX-License-Identifier: Apache-2.0
"""What all local clouds share and no platform alone: HTTP, routing by tables, one tail for errors, faults, state."""
