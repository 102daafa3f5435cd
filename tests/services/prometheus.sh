#!/bin/bash
# prometheus.sh DIR PORT TARGET - a real Prometheus on 127.0.0.1:PORT that collects http://TARGET/metrics every second, for as long as this
# process runs. DIR keeps its data.
#
# Installs prometheus where it is missing (Debian, as root). Exit code 3: it is missing and cannot be installed.
set -euo pipefail
DIR=$1 PORT=$2 TARGET=$3
if ! command -v prometheus >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 3
  exec 9>/tmp/vramp-tests-apt.lock
  flock 9
  if ! command -v prometheus >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends prometheus; } >&2 || exit 3
  fi
  exec 9>&-
fi
cat >"$DIR/prometheus.yml" <<CFG
global: {scrape_interval: 1s, scrape_timeout: 900ms}
scrape_configs:
  - {job_name: dcgm, static_configs: [{targets: ['$TARGET']}]}
CFG
exec prometheus --config.file="$DIR/prometheus.yml" --storage.tsdb.path="$DIR/data" --web.listen-address="127.0.0.1:$PORT" --log.level=warn
