# SPDX-License-Identifier: Apache-2.0
import ray

ray.init()


@ray.remote
def score(value: int) -> int:
    return value * value


print(max(ray.get([score.remote(value) for value in range(32)])))
