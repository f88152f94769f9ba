#!/usr/bin/env bash
# Measures on a GPU what is missing of the paper's studies (README.md beside this file), and packs it:
#   bash unfinished/measure.sh SECONDS FOLDER     stops after SECONDS, and writes FOLDER/records.tgz
# Called again it goes on: with what is in runs/, or on another machine with a records.tgz that lies beside this file.
# PYTHON names the interpreter; it needs what training needs.
set -uo pipefail
seconds=$1 folder=$(realpath "$2")
cd "$(dirname "$0")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1
end=$((SECONDS + seconds))

if [ ! -e runs/unfinished/complete ]; then
  mkdir -p runs/unfinished
  tar xJf unfinished/networks.tar.xz -C runs/unfinished || exit 1
  if [ -e unfinished/records.tgz ]; then tar xzf unfinished/records.tgz -C runs/unfinished || exit 1; fi
  touch runs/unfinished/complete
fi

# What is done is packed every minute, so that a machine that is taken away loses little. tar ends with 1 where a file
# has changed or gone meanwhile.
pack() {
  local part="$folder/part-$BASHPID.tgz"
  tar czf "$part" -C runs/unfinished --exclude=params --exclude=locks --exclude=complete --exclude='.*.tmp' .
  [ $? -le 1 ] && mv "$part" "$folder/records.tgz"
}
while sleep 60; do pack; done &
packing=$!
trap 'kill $packing; wait $packing; pack; rm -f "$folder"/part-*.tgz' EXIT

# What no study has comes first.
for study in varying-epsilon=results/paper-generalisation/varying-mountain-hike.toml \
  hike-epsilon=results/paper-generalisation/mountain-hike.toml hike=paper/mountain-hike; do
  left=$((end - SECONDS))
  if [ "$left" -gt 0 ]; then
    "${PYTHON:-python3}" benchmarks/gpu.py study "${study#*=}" "runs/unfinished/${study%%=*}" --seconds "$left" || failed=1
  fi
done
exit "${failed:-0}"
