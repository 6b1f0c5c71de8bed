#!/usr/bin/env bash
# Runs a program in a guest with sched_ext, as Cargo's runner:
#
#   CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=vm/guest.sh \
#     cargo run -p workahead-scheduler --features bpf --example itas -- test
#
# A kernel on which the scheduler can't even be attached is put aside for the next one, three times
# at most. WORKAHEAD_GUEST_SECONDS limits how long it may take; with WORKAHEAD_GUEST_SHIFT the clock
# counts instructions (boot.sh -i).
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
program=$1
shift
seconds=${WORKAHEAD_GUEST_SECONDS:-1500}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/workahead/vm

# The tests want these as they are, not as busybox has them.
files=(-f "$program")
clock=()
[ -z "${WORKAHEAD_GUEST_SHIFT:-}" ] || clock=(-i "$WORKAHEAD_GUEST_SHIFT")
for tool in chrt nice; do files+=(-f "$(command -v $tool)"); done
boot() {
  "$here/boot.sh" -k "$kernel" -t "$seconds" "${clock[@]}" "${files[@]}" "$(basename "$program")" \
    "$@"
}

kernel=$("$here/fetch-kernel.sh")
mkdir -p "$cache/passed"
tries=1
until [ -e "$cache/passed/$(basename "$kernel")" ] || boot test attaches; do
  echo "guest: the scheduler can't be attached on $(basename "$kernel")" >&2
  if [ $tries = 3 ]; then
    rm -rf "$cache/rejected"
    echo "guest: nor on two others: it isn't the kernel" >&2
    exit 1
  fi
  kernel=$("$here/fetch-kernel.sh" next)
  tries=$((tries + 1))
done
touch "$cache/passed/$(basename "$kernel")"
boot "$@"
