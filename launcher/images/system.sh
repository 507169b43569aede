# SPDX-License-Identifier: Apache-2.0
# Makes a base ready for a framework: Debian packages, a Python of at least 3.11, the user of runs, an environment.
# The base is Debian or Ubuntu, or has everything asked for already.
set -eu

# Jobs of OCI Data Science run as the user `datascience`, 1000, at home in /home/datascience: so do Oracle's own images.
USER_NAME=datascience
USER_ID=1000
HOME_FOLDER=/home/$USER_NAME
ENVIRONMENT=/opt/trainyard/environment

fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for name in python3 python3.13 python3.12 python3.11; do
    if fits "$name"; then python=$name; break; fi
done
wanted="$*"
if [ -n "$wanted" ] || [ -z "$python" ]; then
    command -v apt-get >/dev/null || {
        echo "the base has no Python 3.11 with venv, or lacks one of: $wanted; and no apt-get to install it" >&2
        exit 1
    }
    apt-get update -qq
    if [ -z "$python" ]; then
        # Ubuntu 22.04 calls it by its number; newer ones and Debian 12 have it as their own.
        for name in python3 python3.11; do
            version=$(apt-cache show --no-all-versions "$name" 2>/dev/null | sed -n 's/^Version: *//p' | head -n 1)
            if [ -n "$version" ] && dpkg --compare-versions "$version" ge 3.11~; then
                python=$name
                wanted="$wanted $name $name-venv"
                break
            fi
        done
        [ -n "$python" ] || { echo "no package of the base has Python 3.11 or newer: take another BASE" >&2; exit 1; }
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted
    rm -rf /var/lib/apt/lists/*
fi

holder=$(getent passwd $USER_ID | cut -d: -f1)
if [ "$holder" != $USER_NAME ]; then
    [ -z "$holder" ] || userdel "$holder"
    getent group $USER_ID >/dev/null || groupadd --gid $USER_ID $USER_NAME
    useradd --uid $USER_ID --gid $USER_ID --home-dir $HOME_FOLDER --create-home --shell /bin/sh $USER_NAME
fi
mkdir -p $HOME_FOLDER/code
chown -R $USER_ID:$USER_ID $HOME_FOLDER

# What the base has stays visible: some bring their framework along.
"$python" -I -m venv --system-site-packages $ENVIRONMENT
# The launcher is found from every folder, without a variable that training processes would inherit. The launcher itself
# runs isolated (-I) and comes before a package of its name that the team installs. In training that package comes first.
site=$($ENVIRONMENT/bin/python -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cat > "$site/trainyard.pth" <<'END'
/opt/trainyard
import sys; sys.flags.isolated and sys.path.insert(0, '/opt/trainyard')
END
