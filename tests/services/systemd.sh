#!/bin/bash
# A real systemd for one test, on a machine whose PID 1 may be anything. Needs root, bash, util-linux; installs systemd, dbus and
# dbus-user-session by apt-get where they are missing. Everything lies in the folder STATE and goes with it.
#
#   systemd.sh up user|system STATE      start a manager
#   systemd.sh exec STATE CMD [ARG...]   run a command where that manager, its journal and its unit folders are the machine's own
#   systemd.sh reboot STATE              end the manager, empty its runtime folders, start it again
#   systemd.sh down STATE                end it
#
# user    one `systemd --user` in this machine's process numbers, with an own journal. Lasting units: STATE/home/.config/systemd/user,
#         a package's: STATE/home/.local/share/systemd/user. Lingering is on while STATE/linger/root exists.
# system  a `systemd --system` as PID 1 of its own namespaces, same network and files but for /run and the unit folders. Lasting units:
#         STATE/etc, a package's: STATE/units. It loads only units of these two folders: the machine's own would set the machine up.
#
# Sockets lie in STATE: keep its path under 60 bytes.
set -euo pipefail
say() { echo "systemd.sh: $*" >&2; }
command=${1:-}
case $command in
  up) mode=${2:?user or system}; S=${3:?STATE} ;;
  exec | reboot | down) S=${2:?STATE} ;;
  *) sed -n '2,10p' "$0" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { say "needs root"; exit 1; }
mkdir -p "$S"; S=$(cd "$S" && pwd -P)
[ "$command" = up ] && echo "$mode" >"$S/mode"
mode=$(cat "$S/mode")
tag=$(printf %s "$S" | cksum | cut -d' ' -f1)

# A recorded process counts only if it still is the same one.
started() { awk '{sub(/.*\) /,""); print $20}' "/proc/$1/stat" 2>/dev/null; }
record() { echo "$1 $(started "$1")" >"$2"; }
alive() { [ -s "$1" ] && read -r p t <"$1" && [ -n "$t" ] && [ "$(started "$p")" = "$t" ]; }
wait_for() { # seconds command...
  local n=$(($1 * 20)); shift
  until "$@" >/dev/null 2>&1; do n=$((n - 1)); [ "$n" -gt 0 ] || return 1; sleep 0.05; done
}
finish() { # pidfile signal seconds
  alive "$1" || return 0
  local p n=$(($3 * 20)); read -r p _ <"$1"
  kill -s "$2" "$p" 2>/dev/null || true
  while alive "$1" && [ "$n" -gt 0 ]; do sleep 0.05; n=$((n - 1)); done
  alive "$1" && kill -s KILL "$p"; rm -f "$1"
}

inside() {
  read -r pid _ <"$S/systemd.pid"
  if [ "$mode" = user ]; then
    export XDG_RUNTIME_DIR=$S/xdg DBUS_SESSION_BUS_ADDRESS=unix:path=$S/xdg/bus
    exec nsenter --target "$pid" --mount --wd="$PWD" -- "$@"
  fi
  unset DBUS_SYSTEM_BUS_ADDRESS DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR
  exec nsenter --target "$pid" --mount --pid --cgroup --uts --ipc --wd="$PWD" -- "$@"
}

up_user() {
  mkdir -p "$S"/{run-systemd/system,run-systemd/journal,run-log,xdg/systemd/user,linger} "$S"/home/.config/systemd/user "$S"/home/.local/share/systemd/user
  mkdir -p /var/lib/systemd/linger /run/systemd /run/log
  chmod 700 "$S/xdg"
  for unit in systemd-tmpfiles-setup.service systemd-tmpfiles-clean.timer systemd-tmpfiles-clean.service; do
    ln -sf /dev/null "$S/xdg/systemd/user/$unit"
  done
  cat >"$S/boot.sh" <<'BOOT'
set -eu
S=$1
mount --make-rprivate /
mount --bind "$S/run-systemd" /run/systemd      # makes the machine look booted with systemd, here alone
mount --bind "$S/run-log" /run/log
mount --bind "$S/linger" /var/lib/systemd/linger
SYSTEMD_LOG_TARGET=console /lib/systemd/systemd-journald >"$S/journald.log" 2>&1 &
echo $! >"$S/journald.raw"
for _ in $(seq 100); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.05; done
group=vramp-test-$2.slice/user-0.slice/user@0.service/init.scope   # the journal reads the unit from this path
for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [ -f "$root/cgroup.procs" ] || continue
  mkdir -p "$root/$group" && echo $$ >"$root/$group/cgroup.procs"
done
export XDG_RUNTIME_DIR=$S/xdg HOME=$S/home USER=root LOGNAME=root
unset DBUS_SESSION_BUS_ADDRESS NOTIFY_SOCKET INVOCATION_ID JOURNAL_STREAM XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
echo $$ >"$S/systemd.raw"
exec /lib/systemd/systemd --user
BOOT
  setsid -f unshare --mount bash "$S/boot.sh" "$S" "$tag" >"$S/boot.log" 2>&1 </dev/null
  wait_for 20 test -s "$S/systemd.raw"
  record "$(cat "$S/systemd.raw")" "$S/systemd.pid"
  record "$(cat "$S/journald.raw")" "$S/journald.pid"
}

up_system() {
  mkdir -p "$S"/{run/lock,run/dbus,run/log/journal,run/systemd/system,units,etc,none,journal}
  local U=$S/units target
  unit() { local file=$1; shift; printf '%s\n' "$@" >"$U/$file"; }
  for target in sysinit sockets timers paths slices local-fs network network-online shutdown umount final; do
    unit $target.target '[Unit]' 'DefaultDependencies=no'
  done
  unit sysinit.target '[Unit]' 'DefaultDependencies=no' 'Wants=systemd-journald.service' 'After=systemd-journald.service'
  unit basic.target '[Unit]' 'DefaultDependencies=no' 'Requires=sysinit.target' 'Wants=sockets.target' 'After=sysinit.target sockets.target'
  unit multi-user.target '[Unit]' 'Requires=basic.target dbus.service' 'After=basic.target dbus.service' 'AllowIsolate=yes'
  unit exit.target '[Unit]' 'DefaultDependencies=no' 'AllowIsolate=yes'
  unit systemd-journald.socket '[Unit]' 'DefaultDependencies=no' 'Before=sockets.target' '[Socket]' \
    'ListenStream=/run/systemd/journal/stdout' 'ListenDatagram=/run/systemd/journal/socket' 'ListenDatagram=/run/systemd/journal/dev-log' \
    'Service=systemd-journald.service' 'SocketMode=0666' 'PassCredentials=yes' 'ReceiveBuffer=8M' 'Timestamping=us'
  unit systemd-journald.service '[Unit]' 'DefaultDependencies=no' 'Requires=systemd-journald.socket' 'After=systemd-journald.socket' 'Before=sysinit.target' \
    '[Service]' 'Type=notify' 'ExecStart=/lib/systemd/systemd-journald' 'Restart=always' 'RestartSec=0' 'StandardOutput=null' \
    'RuntimeDirectory=systemd/journal' 'RuntimeDirectoryPreserve=yes' 'FileDescriptorStoreMax=4224' 'Sockets=systemd-journald.socket'
  unit dbus.socket '[Socket]' 'ListenStream=/run/dbus/system_bus_socket'
  unit dbus.service '[Unit]' 'Requires=dbus.socket' '[Service]' 'Type=notify' 'NotifyAccess=main' \
    'ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation --syslog-only' \
    'ExecReload=/usr/bin/dbus-send --print-reply --system --type=method_call --dest=org.freedesktop.DBus / org.freedesktop.DBus.ReloadConfig'
  cat >"$S/boot.sh" <<'BOOT'
set -eu
S=$1
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$S/run" /run
mount --bind "$S/etc" /etc/systemd/system
[ ! -d /var/log/journal ] || mount --bind "$S/journal" /var/log/journal
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=vramp-test \
  SYSTEMD_UNIT_PATH="/etc/systemd/system:/run/systemd/transient:/run/systemd/system:$S/units" SYSTEMD_GENERATOR_PATH="$S/none" \
  /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal-or-kmsg --show-status=false
BOOT
  local group=/sys/fs/cgroup/unified found=
  [ -d $group ] || group=/sys/fs/cgroup
  group=$group/vramp-test-$tag
  mkdir -p "$group"
  (echo $BASHPID >"$group/cgroup.procs"
    exec setsid -f unshare --pid --fork --mount --cgroup --uts --ipc bash "$S/boot.sh" "$S" >"$S/boot.log" 2>&1 </dev/null)
  find_init() {
    local p
    for p in $(cat "$group/cgroup.procs" "$group/init.scope/cgroup.procs" 2>/dev/null); do
      grep -qE '^NSpid:.*\s1$' "/proc/$p/status" 2>/dev/null && found=$p && return 0
    done
    return 1
  }
  local n=200; until find_init; do n=$((n - 1)); [ "$n" -gt 0 ] || { cat "$S/boot.log" >&2; exit 1; }; sleep 0.05; done
  record "$found" "$S/systemd.pid"
  # unshare's own process has no number inside, which the manager would trip over
  awk '/^PPid:/ {print $2}' "/proc/$found/status" >"${group%/*}/cgroup.procs" || true
}

up() {
  "up_$mode"
  local scope=--user target=basic.target
  [ "$mode" = user ] || { scope=--system target=multi-user.target; }
  wait_for 25 "$0" exec "$S" systemctl $scope is-active $target || { say "it did not come up"; cat "$S/boot.log" >&2; exit 1; }
}

down() {
  if [ "$mode" = user ]; then
    finish "$S/systemd.pid" TERM 15
    finish "$S/journald.pid" TERM 5
  else
    finish "$S/systemd.pid" KILL 5 # PID 1 of its numbers: the kernel ends all of them
  fi
  for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    for group in "$root/vramp-test-$tag.slice" "$root/vramp-test-$tag"; do
      [ -d "$group" ] && find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
  done
  rm -rf "$S"/{xdg,run,run-systemd,run-log,systemd.raw,journald.raw}
}

case $command in
  up)
    need=()
    [ -x /lib/systemd/systemd ] || need+=(systemd)
    command -v dbus-daemon >/dev/null || need+=(dbus)
    [ -f /usr/lib/systemd/user/dbus.socket ] || need+=(dbus-user-session)
    if [ ${#need[@]} -gt 0 ]; then
      say "installing ${need[*]}"
      export DEBIAN_FRONTEND=noninteractive
      install=(apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends "${need[@]}")
      { "${install[@]}" || { apt-get update && "${install[@]}"; }; } >"$S/apt.log" 2>&1 || { tail -5 "$S/apt.log" >&2; exit 1; }
    fi
    up ;;
  exec) shift 2; inside "$@" ;;
  reboot) down; up ;;
  down) down ;;
esac
