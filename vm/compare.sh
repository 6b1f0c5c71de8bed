#!/usr/bin/env bash
# Compares schedulers in a guest with sched_ext, by `workahead scheduler compare`, shows its table
# and leaves its record in a file:
#
#   vm/compare.sh target/debug/workahead RECORD.json [PROGRAM]... -- [WORD]...
#
# PROGRAMs are other schedulers' (~/.cargo/bin/scx_lavd), which go along; WORDs go to `compare`. The
# guest's clock counts instructions: other work of the host doesn't change these figures, and caches
# that a scheduler may warm aren't there. WORKAHEAD_GUEST_SECONDS limits how long it may take.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
program=$1 record=$2
shift 2
files=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  files+=(-f "$1")
  shift
done
[ $# = 0 ] || shift
# 500 million instructions a second, which four CPUs share.
shift_of_clock=1
seconds=${WORKAHEAD_GUEST_SECONDS:-3600}

kernel=$("$here/fetch-kernel.sh")
# Schedulers of the scx project read the kernel's configuration.
[ ${#files[@]} = 0 ] || "$here/fetch-kernel.sh" config >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strip -o "$work/workahead" "$program"
cat >"$work/run" <<'RUN'
workahead scheduler compare "$@" --out /tmp/record.json
status=$?
[ ! -e /tmp/record.json ] || cat /tmp/record.json >/dev/ttyS2
exit $status
RUN
status=0
"$here/boot.sh" -k "$kernel" -t "$seconds" -m 1500 -i "$shift_of_clock" -f "$work/workahead" \
  -f "$work/run" "${files[@]}" -o "$work/output" sh run "$@" || status=$?
tr -d '\r' <"$work/output" >"$record"
exit "$status"
