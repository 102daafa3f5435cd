#!/bin/bash
# sshd.sh DIR PORT - a real sshd on 127.0.0.1:PORT with keys made in DIR, for as long as this process runs.
#
# The remote is this machine, as this user; DIR/bin comes first in its PATH, for stand-ins, and XDG_RUNTIME_DIR is handed on. To connect: ssh -F DIR/config vramp-test
# Installs openssh-server where it is missing (Debian, as root). Exit code 3: it is missing and cannot be installed.
set -euo pipefail
DIR=$1 PORT=$2
if ! [ -x /usr/sbin/sshd ] || ! command -v ssh >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 3
  exec 9>/tmp/vramp-tests-apt.lock
  flock 9
  if ! [ -x /usr/sbin/sshd ]; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends openssh-server openssh-client; } >&2 || exit 3
  fi
  exec 9>&-
fi
mkdir -p "$DIR/bin"
chmod 700 "$DIR"
for key in host_key other_host_key id stranger; do
  ssh-keygen -q -t ed25519 -N '' -f "$DIR/$key" -C vramp-test
done
cp "$DIR/id.pub" "$DIR/authorized_keys"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
# StrictModes no: DIR may lie in a world-writable /tmp. Loopback and this key alone.
cat >"$DIR/sshd_config" <<CFG
Port $PORT
ListenAddress 127.0.0.1
HostKey $DIR/host_key
PidFile none
AuthorizedKeysFile $DIR/authorized_keys
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PrintMotd no
SetEnv PATH=$DIR/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin${XDG_RUNTIME_DIR:+ XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR}
CFG
# Besides the host itself: one that nobody knows the key of, one whose key is another than on record, one that takes no key of ours,
# one that is behind the first, and one with what a person's own session may have.
host() {
  printf 'Host %s\n  HostName 127.0.0.1\n  Port %s\n  IdentityFile %s\n  UserKnownHostsFile %s\n' "$1" "$PORT" "$DIR/$2" "$DIR/$3"
  printf '  IdentitiesOnly yes\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking %s\n' "${4:-yes}"
}
{
  host vramp-test id known_hosts
  host vramp-unknown id none ask
  host vramp-changed id changed_hosts
  host vramp-stranger stranger known_hosts
  host vramp-jump id known_hosts
  printf '  ProxyJump vramp-test\n'
  host vramp-busy id known_hosts
  printf '  RemoteCommand sleep 1\n  RequestTTY yes\n  LocalForward 1 127.0.0.1:1\n  ExitOnForwardFailure yes\n'
  printf '  ControlMaster auto\n  ControlPath %s/user-%%C\n  ControlPersist 60\n' "$DIR"
} >"$DIR/config"
echo "[127.0.0.1]:$PORT $(cut -d' ' -f1,2 "$DIR/host_key.pub")" >"$DIR/known_hosts"
echo "[127.0.0.1]:$PORT $(cut -d' ' -f1,2 "$DIR/other_host_key.pub")" >"$DIR/changed_hosts"
exec /usr/sbin/sshd -D -e -f "$DIR/sshd_config"
