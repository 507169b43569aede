# SPDX-License-Identifier: Apache-2.0
"""A CrossGuard policy pack. It judges resources before they are created, by their properties alone, of any program."""
