# SPDX-License-Identifier: Apache-2.0
# Compiles Horovod into /wheels for one framework: gloo always, NCCL where it is asked for; no MPI.
set -eu
strategy=$1
gpu_operations=$2
python=/opt/trainyard/environment/bin/python

export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MXNET=1
case $strategy in
pytorch)
    export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1
    # Debian keeps torch's own headers outside the package.
    if [ -d /usr/include/torch/csrc/api/include ]; then
        headers=$($python -c 'import sysconfig; print(sysconfig.get_path("include", scheme="posix_prefix"))')
        export CPLUS_INCLUDE_PATH=/usr/include/torch/csrc/api/include:$headers
    fi
    ;;
tensorflow) export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 ;;
*)
    echo "Horovod is built for pytorch or tensorflow, not for \`$strategy\`" >&2
    exit 1
    ;;
esac
if [ -n "$gpu_operations" ]; then
    export HOROVOD_GPU_OPERATIONS="$gpu_operations"
fi
# What Horovod's build needs is in the lock: nothing else is fetched for it.
$python -I -m pip wheel --no-cache-dir --no-deps --no-build-isolation --require-hashes --wheel-dir /wheels \
    --requirement /opt/trainyard/images/horovod/source.txt
