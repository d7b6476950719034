#!/bin/sh
# A sensor device in shell, with curl. What could not be sent waits in a file, and is sent first.
set -eu
url="${DEVICE_HTTP_URL:-http://127.0.0.1:8080}/devices/$DEVICE_UUID/up"
unsent="${UNSENT_FILE:-unsent.ndjson}"

# send TOPIC TYPE DATA: prints the answer; fails where there is none, or it is no 2xx.
send() {
  curl -sS --fail --max-time 30 -u "$DEVICE_UUID:$DEVICE_TOKEN" \
    -H "Content-Type: $2" --data-binary "$3" "$url/$1"
}

# Keeps the value first: it is gone from the file only when the service says that it is stored.
measure() {
  printf '{"sId":"%s","val":%s,"ts":%s}\n' "$1" "$2" "$(date +%s)000" >> "$unsent"
  if answer=$(send measurements application/x-ndjson "@$unsent"); then
    echo "stored: $answer"
    : > "$unsent"
  else
    echo 'kept for later' >&2
  fi
}

# What time it is, for a board that has no clock.
send time application/json '{}' || echo 'no answer' >&2
for value in 20 21 22; do
  measure 0x10 "$value"
  sleep 1
done
