#!/bin/sh
# Tests the pages of the player and the dashboard: types, lints, format, unit tests, and tests in a
# real browser. Takes a few minutes. The program may be given, if it is built already. With
# --pictures it only makes the pictures in docs/ again. Those of the dashboard show a real cluster
# for SOLOIST_MINUTES (16).
set -eu
cd "$(dirname "$0")/.."
pictures=
if [ "${1:-}" = --pictures ]; then
    pictures=$PWD/docs
    shift
fi
program=${1:-}
if [ -z "$program" ]; then
    cargo build --quiet -p soloist
    program=${CARGO_TARGET_DIR:-target}/debug/soloist
fi
SOLOIST_BINARY=$(realpath "$program")
CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
SOLOIST_TRACES=$PWD/target/player-traces
SOLOIST_PICTURES=$pictures
export SOLOIST_BINARY CHROMIUM SOLOIST_TRACES SOLOIST_PICTURES
if [ -z "$CHROMIUM" ]; then
    echo "test-player: there is no chromium: install it, or set CHROMIUM to its path" >&2
    exit 1
fi
cd crates/cli/web
# The oldest version that the linter and the browser's driver run on.
if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then
    echo "test-player: Node.js 20.19 or later is needed, and $(node --version || echo none) is installed" >&2
    exit 1
fi
if ! cmp -s package-lock.json node_modules/.for; then
    npm ci --no-audit --no-fund --silent
    cp package-lock.json node_modules/.for
fi
if [ -n "$pictures" ]; then
    node browser/dashboard/pictures.js "$pictures" "${SOLOIST_MINUTES:-16}"
    exec node --test browser/pictures.test.js
fi
npm run --silent check
rm -rf "$SOLOIST_TRACES"
npm run --silent browser
