# SPDX-License-Identifier: Apache-2.0
"""Ray as its first page shows it: tasks on every node count darts, the driver writes what came out."""

import json
import random

import ray


@ray.remote
def throw(darts, seed):
    chance = random.Random(seed)
    inside = sum(chance.random() ** 2 + chance.random() ** 2 <= 1 for _ in range(darts))
    return inside, ray.util.get_node_ip_address()


def main():
    ray.init()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    print(f"{len(nodes)} nodes, {ray.cluster_resources()['CPU']:.0f} processors")
    darts, tasks = 20_000, 16
    results = ray.get([throw.remote(darts, seed) for seed in range(tasks)])
    estimate = 4 * sum(inside for inside, _ in results) / (darts * tasks)
    print(f"pi is about {estimate:.4f}")
    with open("pi.json", "w") as file:
        json.dump({"pi": estimate, "nodes": len(nodes), "used": sorted({address for _, address in results})}, file)


if __name__ == "__main__":
    main()
