# SPDX-License-Identifier: Apache-2.0
# Installs a lock (exact versions with hashes), then the team's packages, which cannot change locked versions.
set -eu
lock=$1
team=$2
here=${0%/*}
python="${TRAINYARD_PYTHON:-/opt/trainyard/environment/bin/python}"
pip="$python -I -m pip --disable-pip-version-check --no-input"

asks() { grep -q '^[[:space:]]*[^#[:space:]]' "$1"; }

if asks "$lock"; then
    # A lock is complete. What it leaves out on purpose, as tf-keras' `tensorflow`, is there by another name.
    $pip install --no-cache-dir --no-deps --require-hashes --requirement "$lock"
fi
if asks "$team"; then
    $python "$here/known_as.py" "$here/known_as.txt" > /tmp/pinned.txt
    # A base may hold packages that were installed from files, which no constraint can name.
    $pip freeze --local | sed -n '/==/p' >> /tmp/pinned.txt
    $pip install --no-cache-dir --constraint /tmp/pinned.txt --requirement "$team"
    rm /tmp/pinned.txt
fi
