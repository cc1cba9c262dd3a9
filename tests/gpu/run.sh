#!/bin/bash
# Runs what `make gpu-bundle` gathered, on a machine with a GPU and without cargo.
#
#   run.sh [tests] [conformance] [bench] [-- OPTIONS OF weft bench gpu]      all three where none is named
#
# RESULTS    the folder for logs and JSON [results, beside this file]
# EXECUTORS  what the conformance suite runs on [cuda:8 cuda:32 cuda:all]
set -o pipefail
here=$(cd "$(dirname "$0")" && pwd) || exit 2
results=${RESULTS:-$here/results}
executors=${EXECUTORS:-cuda:8 cuda:32 cuda:all}
mkdir -p "$results" && results=$(cd "$results" && pwd) && cd "$here" || exit 2

parts=()
while [ $# -gt 0 ]; do
  case $1 in
    tests | conformance | bench) parts+=("$1") ;;
    --) shift && break ;;
    *) echo "run.sh: '$1' is none of tests, conformance, bench" >&2 && exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} -gt 0 ] || parts=(tests conformance bench)

# Each part prints what it does, fails where anything in it does, and leaves what failed in `failed`.
tests() {
  unpack tests || return
  for test in "$unpacked"/tests/*; do
    echo "-- ${test##*/}"
    WEFT_REQUIRE_GPU=1 "$test" || failed+=("${test##*/}")
  done
  rm -rf "$unpacked"
}

conformance() {
  unpack onnx-data || return
  for executor in $executors; do
    echo "-- $executor"
    ./weft-conformance --data "$unpacked/onnx-data" --executor "$executor" || failed+=("$executor")
  done
  rm -rf "$unpacked"
}

unpack() { # the name of an archive; into a folder of its own, `unpacked`
  unpacked=$(mktemp -d) || { failed+=("no temporary folder") && return 1; }
  # Not every machine has xz, and those that lack it may have Python.
  tar -xJf "$1.tar.xz" -C "$unpacked" 2>/dev/null || python3 -m tarfile -e "$1.tar.xz" "$unpacked" && return
  failed+=("$1.tar.xz cannot be unpacked")
  return 1
}

bench() {
  ./weft bench gpu --json "$results/bench.json" "$@" || failed+=("weft bench gpu")
}

run() { # a part, then its arguments
  local failed=()
  "$@"
  [ ${#failed[@]} -eq 0 ] && echo "$1: ok" && return
  local IFS=,
  echo "$1: FAILED: ${failed[*]}"
  return 1
}

outcomes=()
status=0
for part in "${parts[@]}"; do
  arguments=()
  [ "$part" = bench ] && arguments=("$@")
  run "$part" "${arguments[@]}" 2>&1 | tee "$results/$part.log" || status=1
  outcomes+=("$(tail -n 1 "$results/$part.log")")
done
echo
printf '%s\n' "${outcomes[@]}"
exit $status
