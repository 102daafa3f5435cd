#!/usr/bin/env bash
# Measures what the drawing cockpit adds to a benchmark at 100 streams: CPU for each event and error of TTFT.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
before=()
if [ "$(id -u)" -eq 0 ]; then before=(nice -n -15); fi
cargo test --release --locked --test measure --no-run
exec "${before[@]}" cargo test --release --locked --test measure what_drawing_adds -- --ignored --nocapture
