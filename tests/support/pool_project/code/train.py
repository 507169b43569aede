# SPDX-License-Identifier: Apache-2.0
"""Squares sixty numbers on all nodes that have joined."""

import os
from collections import Counter

import pool

COUNT = 60
numbers, squares = pool.connected(os.environ["POOL_HEAD"], os.environ["POOL_PORT"])
for number in range(COUNT):
    numbers.put(number)
found = [squares.get() for _ in range(COUNT)]
print("squared by", dict(Counter(name for _, name in found)))
assert sum(square for square, _ in found) == sum(number * number for number in range(COUNT))
