#!/usr/bin/env bash
# What the load client costs and how true its figures are, beside a bare yardstick: quiet, beside two threads that only burn CPU, and over
# a million requests. Takes about a quarter of an hour. As root the measured pair goes before other work on the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
before=()
if [ "$(id -u)" -eq 0 ]; then before=(nice -n -15); fi
cargo build --release --locked --bench client --bin vramp
client=$(cargo bench --locked --bench client --no-run 2>&1 | sed -n 's/.*(\(.*\))$/\1/p' | tail -1)
echo "load average before: $(cut -d' ' -f1-3 /proc/loadavg)"
"${before[@]}" "$client" --passes "${PASSES:-6}"
echo "beside two busy loops:"
"${before[@]}" "$client" --passes "${PASSES:-6}" --busy 2
"${before[@]}" "$client" long "${REQUESTS:-1000000}"
