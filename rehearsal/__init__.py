# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal saw, what follows from it, and how that is told. Pure: rehearsing/ brings up, runs and looks."""
