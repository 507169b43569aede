# SPDX-License-Identifier: Apache-2.0
"""Fits a line to noisy points by gradient descent. It runs on a laptop, and its loss falls visibly."""

import argparse
import random


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000)
    options = parser.parse_args()
    chance = random.Random(7)
    points = [
        (x, 3.0 * x - 1.0 + chance.gauss(0.0, 0.1)) for x in (chance.uniform(-1, 1) for _ in range(options.points))
    ]
    slope = intercept = 0.0
    for epoch in range(1, options.epochs + 1):
        for x, y in points:
            error = slope * x + intercept - y
            slope -= 0.05 * error * x
            intercept -= 0.05 * error
        loss = sum((slope * x + intercept - y) ** 2 for x, y in points) / len(points)
        print(f"epoch {epoch} loss {loss:.4f}")
    print(f"done: y = {slope:.2f} x + {intercept:.2f}")


if __name__ == "__main__":
    main()
