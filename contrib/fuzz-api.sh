#!/bin/sh
# Fuzzes the HTTP API of a running cluster from its own description, with schemathesis: no answer of 500 or
# above, and none that the description does not have. Takes about a minute; the same requests each time.
# SEED and EXAMPLES may be set; the server may be given, if it is built already.
set -eu
cd "$(dirname "$0")/.."
work=target/fuzz-api
version=4.32.5
mkdir -p "$work"
if ! "$work/venv/bin/st" --version 2>/dev/null | grep -qF "$version"; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet "schemathesis==$version"
fi
program=${1:-}
if [ -z "$program" ]; then
    cargo build --quiet -p soloist-node --example api_for_fuzzing
    program=${CARGO_TARGET_DIR:-target}/debug/examples/api_for_fuzzing
fi
rm -f "$work/in" "$work/out"
mkfifo "$work/in"
"$program" <"$work/in" >"$work/out" &
server=$!
# The server ends when its input does, however this script ends.
exec 9>"$work/in"
while [ ! -s "$work/out" ]; do
    kill -0 "$server" || exit 1
    sleep 0.1
done
url=$(cat "$work/out")
status=0
# The events never end, and a session takes a WebSocket, which this tool does not
# speak. One worker: with more, the order would be left to chance.
# It leaves its notes where it is run.
(cd "$work" && venv/bin/st --config-file ../../contrib/fuzz-api.toml run "$url/openapi.json" \
    --checks all --exclude-path /v1/events --exclude-path /v1/session --seed "${SEED:-4711}" --max-examples "${EXAMPLES:-200}" \
    --request-timeout 20 --workers 1 --no-color) || status=$?
# It lives, and ends cleanly.
kill -0 "$server"
exec 9>&-
wait "$server"
rm -f "$work/in" "$work/out"
exit "$status"
