#!/bin/bash
# A real container engine for one test, with compose. Needs root, bash and curl; installs docker.io and docker-compose by apt-get where they
# are missing. No registry is reached: the one image is made here, and has the machine's own /usr by a volume. Everything lies in the folder
# STATE and goes with it; nothing is changed in the network, so containers use the machine's (network_mode: host).
#
#   docker.sh up STATE      start an engine at unix://STATE/docker.sock, with the image vramp-test:1
#   docker.sh down STATE    remove its containers and end it
#
# Sockets lie in STATE: keep its path under 60 bytes.
set -euo pipefail
say() { echo "docker.sh: $*" >&2; }
command=${1:-} S=${2:-}
case $command in
  up | down) [ -n "$S" ] || { say "which folder?"; exit 2; } ;;
  *) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { say "needs root"; exit 1; }
mkdir -p "$S"; S=$(cd "$S" && pwd -P)
export DOCKER_HOST=unix://$S/docker.sock

# A recorded process counts only if it still is the same one.
started() { awk '{sub(/.*\) /,""); print $20}' "/proc/$1/stat" 2>/dev/null; }
alive() { [ -s "$S/dockerd.pid" ] && read -r p t <"$S/dockerd.pid" && [ -n "$t" ] && [ "$(started "$p")" = "$t" ]; }

up() {
  local need=()
  command -v dockerd >/dev/null || need+=(docker.io)
  command -v docker-compose >/dev/null || need+=(docker-compose)
  command -v curl >/dev/null || need+=(curl)
  if [ ${#need[@]} -gt 0 ]; then
    say "installing ${need[*]}"
    export DEBIAN_FRONTEND=noninteractive
    install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${need[@]}")
    { "${install[@]}" || { apt-get update && "${install[@]}"; }; } >"$S/apt.log" 2>&1 || { tail -5 "$S/apt.log" >&2; exit 1; }
  fi
  setsid -f bash -c 'echo $$ >"$0/dockerd.raw"; exec dockerd "$@"' "$S" -H "$DOCKER_HOST" --data-root "$S/data" --exec-root "$S/x" \
    --pidfile "$S/d.pid" --iptables=false --ip6tables=false --bridge=none >"$S/dockerd.log" 2>&1 </dev/null
  local n=300
  until [ "$(curl -s -m 3 --unix-socket "$S/docker.sock" http://d/_ping)" = OK ]; do
    n=$((n - 1)); [ "$n" -gt 0 ] || { say "it did not come up"; tail -20 "$S/dockerd.log" >&2; exit 1; }; sleep 0.1
  done
  p=$(cat "$S/dockerd.raw"); echo "$p $(started "$p")" >"$S/dockerd.pid"
  mkdir -p "$S"/root/{usr,tmp,proc,sys,dev,etc}
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$S/root/$folder"; done
  tar -C "$S/root" --numeric-owner --owner=0 --group=0 -c . |
    docker import -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - vramp-test:1 >/dev/null
}

down() {
  if alive; then
    ids=$(timeout 10 docker ps -aq 2>/dev/null) || true
    # shellcheck disable=SC2086 # several
    [ -z "$ids" ] || timeout 30 docker rm -f $ids >/dev/null 2>&1 || true
    read -r p _ <"$S/dockerd.pid"
    kill "$p"
    n=100; while alive && [ "$n" -gt 0 ]; do sleep 0.1; n=$((n - 1)); done
    ! alive || kill -KILL "$p"
  fi
  awk -v s="$S/" 'index($2, s) == 1 {print $2}' /proc/self/mounts | sort -r | while read -r mount; do umount "$mount" 2>/dev/null || true; done
  grep -q " $S/" /proc/self/mounts || rm -rf "$S"/{data,x,root}
}

"$command"
