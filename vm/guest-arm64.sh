#!/usr/bin/env bash
# Runs a static program in a guest whose PMU counts, as Cargo's runner:
#
#   export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=vm/guest-arm64.sh
#   export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
#   export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
#   cargo test --target aarch64-unknown-linux-gnu -p workahead-cli --test counters_hardware
#
# The command and the program that it counts are taken along, where they lie here: the tests look
# for them there. WORKAHEAD_GUEST_SECONDS limits how long it may take, WORKAHEAD_GUEST_SHIFT is the
# logarithm of the nanoseconds of an instruction, WORKAHEAD_GUEST_CPUS the number of CPUs.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
program=$(realpath "$1")
shift
built=$(dirname "$(dirname "$program")")
shift_=${WORKAHEAD_GUEST_SHIFT:-2}

files=(-f "$program")
for beside in "$built/workahead" "$built/examples/loops"; do
  [ -e "$beside" ] && files+=(-d "$beside")
done
# As on any machine but: a missing counter is a failure, and the rate of the clock is known.
exec "$here/boot.sh" -a arm64 -i "$shift_" -s "${WORKAHEAD_GUEST_CPUS:-1}" -m 2048 \
  -t "${WORKAHEAD_GUEST_SECONDS:-1200}" "${files[@]}" env WORKAHEAD_COUNTERS=required \
  WORKAHEAD_CYCLES_PER_INSTRUCTION=$((1 << shift_)) "$(basename "$program")" "$@"
