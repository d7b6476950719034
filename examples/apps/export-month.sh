#!/bin/sh
# Exports the measurements of a month as CSV, a file for each day in UTC.
#
#   URL=http://127.0.0.1:8080 KEY=sens_… sh examples/apps/export-month.sh 2026-10 label=cellar cellar/
#
# The key needs the scope data:read. Instead of a label: devices=UUID,UUID. If it breaks off, run the same command
# again to continue: a day is complete as soon as its file has its name. Days that are not over are left out.
set -eu
month=${1:?a month, such as 2026-10}
which=${2:?a filter: label=… or devices=…}
directory=${3:-.}
base=${URL:-http://127.0.0.1:8080}

year=${month%-*}
case $month in
????-0[13578] | ????-1[02]) days=31 ;;
????-0[469] | ????-11) days=30 ;;
????-02)
  days=28
  if [ $((year % 4)) -eq 0 ] && { [ $((year % 100)) -ne 0 ] || [ $((year % 400)) -eq 0 ]; }; then
    days=29
  fi
  ;;
*)
  echo "$month is no month, such as 2026-10." >&2
  exit 2
  ;;
esac

mkdir -p "$directory"
today=$(date -u +%Y%m%d)
number=1
while [ "$number" -le "$days" ]; do
  day=$month-$(printf %02d "$number")
  number=$((number + 1))
  file=${directory%/}/$day.csv
  if [ -e "$file" ]; then continue; fi
  if [ "$(echo "$day" | tr -d -)" -ge "$today" ]; then break; fi
  # Pass the key by standard input: other users of the machine can see a program's arguments.
  if ! printf 'header = "Authorization: Bearer %s"\n' "$KEY" |
    curl --config - --silent --show-error --fail-with-body --compressed \
      --retry "${RETRIES:-5}" --retry-connrefused --output "$file.part" \
      --header 'Accept: text/csv' --get "$base/v2/measurements" --data-urlencode "$which" \
      --data "start=${day}T00:00:00Z" --data "end=${day}T23:59:59.999Z"; then
    if [ -s "$file.part" ]; then head -c 1000 "$file.part" >&2 && echo >&2; fi
    echo "$day failed; the same command goes on there." >&2
    exit 1
  fi
  mv "$file.part" "$file"
  echo "$file"
done
