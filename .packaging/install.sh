#!/bin/sh
# Installs Holdfast for one person: `holdfast` in ~/.local/bin, in an environment of its own.
#
#   sh install.sh            the newest commit of the repository
#   sh install.sh v1.0.0     a tag, a branch or a commit
#   sh install.sh ./folder   a checkout, a wheel, an sdist
#
# Uses uv or pipx; without either, it fetches uv just for the installation. Run it again to update;
# `uv tool uninstall holdfast` (or `pipx uninstall holdfast`) removes Holdfast. It asks for no
# password and changes none of your shell's files: if ~/.local/bin isn't on PATH, it prints the line
# to add.
set -eu

repository="https://github.com/holdfast-agent/holdfast"
wanted="${1:-main}"

say() { printf '%s\n' "$*"; }
fail() {
  printf 'Installation failed: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '%s\n' "$2" >&2; fi
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# The first Python that is new enough, or nothing.
find_python() {
  for one in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if has "$one" && "$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$one"
      return
    fi
  done
}

# HOME must be set, and the two folders that are written to must be writable.
check_home() {
  [ -n "${HOME:-}" ] || fail "HOME is not set." "Set it: export HOME=/home/you"
  for folder in "$HOME/.local/bin" "${XDG_DATA_HOME:-$HOME/.local/share}"; do
    mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] ||
      fail "$folder isn't writable." "Make it writable, or set HOME to a folder that is."
  done
}

# Where to install from. An archive needs no git.
source_of() {
  case "$1" in
    */*|*.whl|*.tar.gz|.) [ -e "$1" ] || fail "there is no $1."; printf '%s' "$1" ;;
    *) printf '%s/archive/%s.zip' "$repository" "$1" ;;
  esac
}

# Puts uv into a folder that is removed at the end.
fetch_uv() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  if "$1" -m venv "$scratch/env" >"$scratch/said" 2>&1; then
    python="$scratch/env/bin/python"
  elif "$1" -m pip --version >/dev/null 2>&1; then
    python="$1"
  else
    fail "$1 has neither pip nor venv." "On Debian and Ubuntu: sudo apt install python3-venv"
  fi
  "$python" -m pip install --quiet --disable-pip-version-check --target "$scratch/uv" uv \
    >"$scratch/said" 2>&1 ||
    fail "uv couldn't be fetched." "$(tail -n 3 "$scratch/said")
Behind a proxy, set HTTPS_PROXY. Or install uv or pipx yourself, then run this again."
  uv="$scratch/uv/bin/uv"
}

main() {
  check_home
  from=$(source_of "$wanted")
  interpreter=$(find_python)
  if has uv; then
    uv=uv
  elif has pipx && [ -n "$interpreter" ]; then
    say "Installing with pipx …"
    pipx install --force --python "$interpreter" "$from" || fail "pipx couldn't install Holdfast."
    ready
    return
  elif [ -n "$interpreter" ]; then
    say "Fetching uv, just for the installation …"
    fetch_uv "$interpreter"
  else
    fail "no Python 3.11 or newer was found." \
      "Install one, or uv, which brings its own: https://docs.astral.sh/uv/"
  fi
  say "Installing with uv …"
  "$uv" tool install --force --reinstall ${interpreter:+--python "$interpreter"} "$from" ||
    fail "uv couldn't install Holdfast."
  ready
}

ready() {
  bin="$HOME/.local/bin"
  [ -x "$bin/holdfast" ] || bin="${UV_TOOL_BIN_DIR:-${XDG_BIN_HOME:-${PIPX_BIN_DIR:-$bin}}}"
  "$bin/holdfast" --version || fail "$bin/holdfast doesn't start."
  found=$(command -v holdfast || true)
  if [ "$found" = "$bin/holdfast" ]; then
    say "Run: holdfast"
  elif [ -n "$found" ]; then
    say "\`holdfast\` starts another installation: $found. Remove it, or run: $bin/holdfast"
  else
    say "$bin is not on PATH. Add this line to ~/.profile (or ~/.zprofile), then log in again:"
    say "  export PATH=\"$bin:\$PATH\""
    say "Until then, run: $bin/holdfast"
  fi
}

main
