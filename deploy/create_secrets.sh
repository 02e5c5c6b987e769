#!/bin/sh
# Writes the secrets of compose.yaml into deploy/secrets, each once: what exists is kept.
# The folder admits its owner alone. Its files have the mode 0644, because a container's account,
# another one, reads them where they are mounted.
set -eu

folder="${1:-$(dirname "$0")/secrets}"
install -d -m 0700 "$folder"

new() { # NAME VALUE
    [ -e "$folder/$1" ] && return
    printf '%s\n' "$2" >"$folder/$1.draft"
    chmod 0644 "$folder/$1.draft"
    mv "$folder/$1.draft" "$folder/$1"
}

random() { # 64 hexadecimal digits
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

new postgres_password "$(random)"
new database_url "postgresql://grove:$(cat "$folder/postgres_password")@postgres/grove"
new secret_key "$(random)"
new metrics_token "$(random)"
echo "Secrets are in $folder. Keep a copy of secret_key: backups without --secrets need it."
