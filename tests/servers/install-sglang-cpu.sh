#!/usr/bin/env bash
# Installs a real SGLang (0.5.23) from PyPI for the CPU, and makes a tiny random-weight model for it.
#
#   usage: tests/servers/install-sglang-cpu.sh [DIR]     (default: ${XDG_CACHE_HOME:-~/.cache}/vramp-tests)
#
# A second run with the same versions does nothing but print. Prints, last: SGLANG=PATH and SGLANG_MODEL=PATH.
# Start: "$SGLANG" --model-path "$SGLANG_MODEL" --served-model-name tiny --context-length 8192 --enable-metrics --port 30000
# What is real: the HTTP server, tokenizer manager, scheduler, KV pool, radix cache, metrics and model code; attention is SGLang's torch_native
# backend. Its compiled kernels need CUDA or AMX, so sgl_kernel is a stand-in whose every call raises: nothing on this path calls it. The dependencies for
# CUDA alone are left out, and torch is 2.13.0 instead of the 2.14.1 that the wheel asks for.
# Needs x86_64 Linux with AVX2, python3 3.11 with venv, about 6 GB of disk.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/python-server.sh"

version=0.5.23
kernel=0.4.10
want="sglang==$version torch==2.13.0"
enter "${1:-}"
stamp="$dir/.sglang-installed"
venv="$dir/venv-sglang"
launcher="$dir/sglang-server"

install() {
  rm -f "$stamp"
  require '3\.11' '3.11'
  make_venv "$venv"
  install_wheels "$venv" "sglang==$version" sglang
  local site
  site="$(site_packages "$venv")"
  mkdir -p "$site/sgl_kernel" "$site/sglang_kernel-$kernel.dist-info"
  cp "$here/sgl_kernel_stub/__init__.py" "$site/sgl_kernel/__init__.py"
  printf 'Metadata-Version: 2.1\nName: sglang-kernel\nVersion: %s\n' "$kernel" >"$site/sglang_kernel-$kernel.dist-info/METADATA"
  write_launcher "$launcher" <<LAUNCHER
#!/bin/sh
: "\${HF_HUB_OFFLINE:=1}" "\${TRANSFORMERS_OFFLINE:=1}" "\${SGLANG_USE_CPU_ENGINE:=1}"
export HF_HUB_OFFLINE TRANSFORMERS_OFFLINE SGLANG_USE_CPU_ENGINE
exec "$venv/bin/python" -m sglang.launch_server --device cpu --attention-backend torch_native \
  --disable-cuda-graph --disable-overlap-schedule --mem-fraction-static 0.5 --max-total-tokens 65536 "\$@"
LAUNCHER
}

if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || [ ! -x "$launcher" ]; then
  install
fi
make_model "$venv"
printf '%s' "$want" >"$stamp"

echo "SGLANG=$launcher"
echo "SGLANG_MODEL=$model"
