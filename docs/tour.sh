#!/bin/sh
# Five minutes with a running Sensorium, by curl, mosquitto_pub and mosquitto_sub.
# docs/tour.md shows the same lines with what they print.
#
#   sh docs/tour.sh                           a service on this machine
#   URL=http://192.0.2.7:8080 sh docs/tour.sh  one elsewhere
set -eu
cd "$(dirname "$0")/.."

# --- Is it there?
URL=${URL:-http://127.0.0.1:8080}
curl -fsSw '\n' "$URL/v2/status"

# --- An account
JSON='Content-Type: application/json'
field() { node -p "JSON.parse(require('fs').readFileSync(0)).$1"; }

EMAIL="tour-$(date +%s)@example.org"
LOGIN="{ \"email\": \"$EMAIL\", \"password\": \"a long pass phrase\" }"
curl -fsSw '\n' -H "$JSON" -d "$LOGIN" "$URL/v2/accounts"

TOKEN=$(curl -fsS -H "$JSON" -d "$LOGIN" "$URL/v2/accounts/login" | field accountAuthToken)
AUTH="Authorization: Bearer $TOKEN"
curl -fsSw '\n' -H "$AUTH" "$URL/v2/accounts"

# --- A device
DEVICE=$(curl -fsS -H "$AUTH" -H "$JSON" "$URL/v2/devices" -d '{
  "device": { "name": "Cold room", "serial": "0001" },
  "module": [
    { "moduleId": "climate", "senses": [
      { "sId": "0x10", "min": -40, "max": 85, "name": "Temperature", "unit": "°C", "decimals": 1 }
    ] }
  ]
}')
echo "$DEVICE"

UUID=$(echo "$DEVICE" | field deviceAuthUuid)
KEY=$(echo "$DEVICE" | field deviceAuthToken)
HOST=$(echo "$DEVICE" | field host)
PORT=$(echo "$DEVICE" | field port)

# --- It connects and publishes
set -- -h "$HOST" -p "$PORT" -u "$UUID" -P "$KEY" -q 1
mosquitto_pub "$@" -t "devices/$UUID/up/state" -m '{ "puId": 7, "stId": 1 }'
mosquitto_pub "$@" -t "devices/$UUID/up/measurements" -m '{ "sId": "0x10", "val": 3.9 }'
curl -fsSw '\n' -H "$AUTH" "$URL/v2/devices/$UUID/configuration"
curl -fsSw '\n' -H "$AUTH" "$URL/v2/measurements/$UUID"

# --- A purpose, installed as a profile
PURPOSE=$(curl -fsS -H "$AUTH" -H "$JSON" -d @examples/cold-room.json "$URL/v2/purposes")
echo "$PURPOSE"
PURPOSE_UUID=$(echo "$PURPOSE" | field purposeUuid)

PROFILE=$(curl -fsS -H "$AUTH" -H "$JSON" "$URL/v2/devices/profile" \
  -d "{ \"deviceAuthUuids\": [\"$UUID\"], \"purposeUuids\": [\"$PURPOSE_UUID\"] }")
echo "$PROFILE"
PID=$(echo "$PROFILE" | field pId)

# --- The device accepts it
mosquitto_sub "$@" -C 1 -W 30 -t "devices/$UUID/down/profile" | cut -c 1-90
mosquitto_pub "$@" -t "devices/$UUID/up/profile" -m "{ \"pId\": \"$PID\", \"state\": \"current\" }"
curl -fsSw '\n' -H "$AUTH" "$URL/v2/devices/profile/$PID"

# --- Somebody leaves the door open
HEARD=$(mktemp)
mosquitto_sub "$@" -v -C 4 -W 30 -t "devices/$UUID/down/#" > "$HEARD" &
for _ in $(seq 300); do grep -q down/state "$HEARD" && break; sleep 0.1; done
mosquitto_pub "$@" -t "devices/$UUID/up/measurements" -m '{ "sId": "0x10", "val": 8.4 }'
mosquitto_pub "$@" -t "devices/$UUID/up/measurements" -m '{ "sId": "0x10", "val": 9.7 }'
wait
cat "$HEARD"

# --- What happened
curl -fsSw '\n' -H "$AUTH" "$URL/v2/events/$UUID?type=sense"
curl -fsSw '\n' -H "$AUTH" "$URL/v2/events/$UUID?type=device"
curl -fsS -H "$AUTH" -H 'Accept: text/csv' "$URL/v2/measurements/$UUID"

# --- A wrong value is kept and reported
mosquitto_pub "$@" -t "devices/$UUID/up/measurements" -m '{ "sId": "0x10", "val": 900 }'
curl -fsSw '\n' -H "$AUTH" "$URL/v2/devices/$UUID/rejections"
