#!/usr/bin/env bash
# Makes assets/cockpit.svg: the real screen of the demo, in the middle of its walk.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec cargo test --release --locked --test measure picture -- --ignored --nocapture
