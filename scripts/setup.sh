#!/bin/sh
# Installs what the project needs beside Rust, and checks that it works. Safe to run again; then it takes a second.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "setup: $*"; }
fail() { say "$*" >&2; exit 2; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else fail "cannot run '$*' as root; run it yourself, then 'make setup' again"; fi; }

apt_updated=
install() { # what, apt package, brew formula
    if command -v apt-get >/dev/null; then
        [ -n "$apt_updated" ] || { as_root apt-get update -q >/dev/null; apt_updated=1; }
        say "installing $2"
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy "$2" >/dev/null
    elif [ -n "$3" ] && command -v brew >/dev/null; then
        say "installing $3"
        brew install --quiet "$3"
    else
        fail "$1 is missing and there is neither apt-get nor Homebrew: install it, put it on PATH (or name it in [engine] path), then run 'make setup' again"
    fi
}

PATH="$PATH:$HOME/.cargo/bin:/usr/games:/usr/local/bin:/opt/homebrew/bin"
command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.95 or later (https://rustup.rs), then run 'make setup' again"
command -v cc >/dev/null || install "a C compiler" build-essential ""

# Stockfish, where it can be had: it teaches and is measured against. It is looked for where the executables look.
find_stockfish() { (PATH="${TABIYA_ENGINES-$PATH}"; command -v stockfish) || true; }
[ -n "$(find_stockfish)" ] || [ -n "${TABIYA_ENGINES+set}" ] || (install Stockfish stockfish stockfish) || true
engine=$(find_stockfish)
if [ -n "$engine" ]; then
    # It must answer, and take the strength of the milestone match.
    answer=$(printf 'uci\nquit\n' | "$engine" 2>/dev/null) || fail "$engine does not run"
    case "$answer" in *uciok*) ;; *) fail "$engine did not answer 'uci' with 'uciok'" ;; esac
    range=$(printf '%s\n' "$answer" | sed -n 's/^option name UCI_Elo .* min \([0-9]*\) max \([0-9]*\).*/\1 \2/p')
    [ -n "$range" ] || fail "$engine has no option UCI_Elo"
    [ "${range% *}" -le 1500 ] && [ "${range#* }" -ge 1500 ] || fail "$engine takes UCI_Elo from ${range% *} to ${range#* }, not 1500"
    name=$(printf '%s\n' "$answer" | sed -n 's/^id name //p')
    ready="$name at $engine, UCI_Elo ${range% *}..${range#* }"
else
    say "there is no Stockfish and it cannot be installed here: Tabiya's own engine, tabiya-ab, teaches and is played"
    say "against in its place (engine.path = \"auto\"). Nobody has rated it, so eval claims no rating then."
    ready="tabiya-ab, which 'make build' builds"
fi

# Python is used by the recipes' tests and by the benchmarks' peers, never by a stage.
python_packages() {
    if cmp -s scripts/requirements.txt .venv/installed.txt; then return 0; fi
    command -v python3 >/dev/null || install Python python3 python3
    python3 -c 'import ensurepip' 2>/dev/null || install "Python's venv module" python3-venv ""
    say "Python packages into .venv"
    python3 -m venv .venv &&
        .venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt &&
        cp scripts/requirements.txt .venv/installed.txt
}
if ! (python_packages); then
    [ "${PYTHON-}" = optional ] || fail "there are no Python packages, which tests, recipes and benchmarks need"
    say "going on without Python packages: the stages need none, but tests, recipes and benchmarks do"
fi
say "ready: $ready"
