#!/usr/bin/env bash
# Measures start to first frame and the cost at rest, with eight cards of the NVML stand-in at 1 Hz and an idle server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec cargo test --release --locked --test measure start_and_rest -- --ignored --nocapture
