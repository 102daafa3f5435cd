#!/usr/bin/env bash
# Measures how long logs of 200 MB take to be diagnosed, in 128 MiB of address space.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec cargo test --release --locked --test measure a_log_of_200_mb -- --ignored --nocapture
