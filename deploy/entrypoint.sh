#!/bin/sh
# What the image runs. Each role is one process, which gets the container's signals.
#   migrate   the database to this version, then end
#   web       pages, REST and the stream, on GROVE_PORT (8000) of every interface
#   worker    runs and jobs; on SIGTERM its engines make checkpoints (up to 90 s)
#   anything else is run as it is: grove backup FILE, grove doctor, python -m engine ...
# It runs as any account, also one that the image does not know, on a root that nobody can write to:
# what is written goes to GROVE_VAR, and to HOME and TMPDIR where they can be written.
set -eu
umask 077

export GROVE_VAR="${GROVE_VAR:-/var/lib/grove}"
mkdir -p "$GROVE_VAR" 2>/dev/null || :
if [ ! -w "$GROVE_VAR" ]; then
    echo "GROVE_VAR = '$GROVE_VAR': account $(id -u) cannot write there; mount a volume that it owns" >&2
    exit 73
fi
if [ ! -w "${HOME:-/nowhere}" ]; then
    export HOME="$GROVE_VAR/home"
    mkdir -p "$HOME"
fi
if [ ! -w "${TMPDIR:-/tmp}" ]; then
    export TMPDIR="$GROVE_VAR/tmp"
    mkdir -p "$TMPDIR"
fi
# Libraries look up the account's name, which an unknown one has not.
if ! id -un >/dev/null 2>&1; then
    export USER=grove LOGNAME=grove
fi

role="${1:-web}"
case "$role" in
migrate)
    exec grove upgrade
    ;;
web)
    exec grove manage serve_web --host 0.0.0.0 --port "${GROVE_PORT:-8000}"
    ;;
worker)
    exec python -m celery --quiet -A workers.app worker --pool threads \
        --concurrency "${GROVE_RUNS_AT_ONCE:-1}" \
        --without-gossip --without-mingle --without-heartbeat --loglevel INFO
    ;;
*)
    exec "$@"
    ;;
esac
