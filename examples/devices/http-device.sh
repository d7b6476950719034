#!/bin/sh
# A sensor device in shell, with curl. Values that could not be sent wait in a file, and are sent first.
set -eu
url="${DEVICE_HTTP_URL:-http://127.0.0.1:8080}/devices/$DEVICE_UUID"
unsent="${UNSENT_FILE:-unsent-$DEVICE_UUID.ndjson}"
interval="${INTERVAL:-10}" # whole seconds
after=''
newline='
'

# ask PATH CURL'S OPTIONS: sets $answer. Fails if the device has to ask again later.
# The token goes to curl through a pipe, because every user of the machine can see arguments.
ask() {
  path=$1
  shift
  answer=$(printf 'user = "%s:%s"\n' "$DEVICE_UUID" "$DEVICE_TOKEN" |
    curl -sS --max-time 60 -w '\n%{http_code}' --config - "$@" "$url/$path") || return 1
  status=${answer##*"$newline"}
  answer=${answer%"$newline"*}
  case $status in
    200) ;;
    400) echo "not understood: $answer" ;; # sending it again changes nothing
    401 | 404) echo "$answer" >&2; exit 1 ;;
    *) echo "told to wait: $status"; return 1 ;;
  esac
}

# Keeps the value first, with its ts, and at most 10,000 values. It skips what is no number (the sensor failed).
keep() {
  case $2 in '' | *[!0-9.eE+-]*) echo "no value: $2"; return ;; esac
  printf '{"sId":"%s","val":%s,"ts":%s}\n' "$1" "$2" "$(date +%s)000" >> "$unsent"
  [ "$(wc -l < "$unsent")" -le 10000 ] || drop 1000
}

# drop N: removes the N oldest values. After a power cut the file is as it was before, or as it is after.
drop() {
  tail -n "+$(($1 + 1))" "$unsent" > "$unsent.new"
  mv "$unsent.new" "$unsent"
}

# Sends kept values in order, and drops them only when the service has answered that they are stored.
send_unsent() {
  while [ -s "$unsent" ]; do
    head -n 500 "$unsent" > "$unsent.batch"
    ask up/measurements -H 'Content-Type: application/x-ndjson' --data-binary "@$unsent.batch" || return 1
    drop 500
    echo "stored: $answer"
  done
}

# listen SECONDS: takes the service's messages for the device. `after` acknowledges them, with the next poll.
listen() {
  ask "down?wait=$1&topics=profile&after=$after" || return 1
  next=$(printf %s "$answer" | sed -n 's/.*"after":"\([^"]*\)".*/\1/p')
  pid=$(printf %s "$answer" | sed -n 's/^{"messages":\[{"topic":"profile","payload":{"pId":"\([^"]*\)".*/\1/p')
  if [ -n "$pid" ]; then
    # This device accepts every profile; the service evaluates it.
    taken="{\"pId\":\"$pid\",\"state\":\"current\",\"engine\":\"service\"}"
    ask up/profile -H 'Content-Type: application/json' --data "$taken" || return 1
    echo "took profile $pid"
  fi
  after=$next
}

touch "$unsent"
# A last line without its end was cut off while it was written: the service refuses it, and only it.
[ -z "$(tail -c 1 "$unsent")" ] || echo >> "$unsent"
count=0
while :; do
  due=$(($(date +%s) + interval))
  keep 0x10 $((20 + count % 10))
  count=$((count + 1))
  send_unsent || echo 'kept for later'
  # Listen during the pause.
  while left=$((due - $(date +%s))) && [ "$left" -gt 0 ]; do
    listen $((left < 25 ? left : 25)) || sleep "$left"
  done
done
