from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

TorchTrainer(
    print, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path="/mnt/cluster_storage")
).fit()
