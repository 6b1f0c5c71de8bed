#!/usr/bin/env bash
# Runs studies of PostgreSQL and MariaDB in a guest with sched_ext, as these servers are installed
# here, and leaves what was measured, all studies' observations, in a file:
#
#   vm/study.sh target/debug/workahead OBSERVATIONS.jsonl STUDY.toml... [-- WORD...]
#
# WORDs go to `study run`. The servers' data is made here, by the same run under the scheduler that
# is here, and goes along: in the guest, which is emulated, that takes minutes. So do programs of
# the scx project that a study names (`scheduler = ["default", "scx_lavd"]`), from PATH.
# WORKAHEAD_GUEST_SECONDS limits how long the guest may take.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
program=$1 observations=$2
shift 2
studies=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  studies+=("$1")
  shift
done
[ $# = 0 ] || shift
# 500 million instructions a second, which four CPUs share.
shift_of_clock=1
seconds=${WORKAHEAD_GUEST_SECONDS:-900}

# Not below /tmp, which is another one in the guest; open to the servers' users.
work=$(mktemp -d /var/tmp/workahead-guest.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
strip -o "$work/workahead" "$program"
carried=()
for study in "${studies[@]}"; do
  sed 's/^scheduler = .*/scheduler = ["default"]/' "$study" >"$work/here.toml"
  "$work/workahead" study run "$work/here.toml" "$@" --no-limits --data-dir "$work/data" \
    --out "$work/here" --force >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
  carried+=(-f "$study")
done
for peer in $(sed -n '/^scheduler = /p' "${studies[@]}" | grep -o 'scx_[a-z]*' | sort -u); do
  found=$(command -v "$peer") || {
    echo "study.sh: no $peer in PATH: cargo install $peer" >&2
    exit 1
  }
  # These read the kernel's configuration.
  "$here/fetch-kernel.sh" config >/dev/null
  carried+=(-f "$found")
done

# mariadbd, its messages and character sets; postgres, and what its sessions load; time zones.
for path in /etc/passwd /etc/group "$work/data" /usr/sbin/mariadbd \
  /usr/share/mysql/{english,charsets} /usr/lib/postgresql/*/{bin,lib/*.so} /usr/share/postgresql \
  /usr/share/zoneinfo; do
  [ ! -e "$path" ] || carried+=(-d "$path")
done
cat >"$work/run" <<'RUN'
data=$1
shift
# The owner here may be anybody there. The servers' users pass through what is root's.
[ ! -e "$data/mariadb" ] || chown -R mysql "$data/mariadb"
[ ! -e "$data/postgres" ] || chown -R postgres "$data/postgres"
chown 0 "$data" "$data"/*
chmod 711 "$data" "$data"/*
for study in *.toml; do
  workahead study run "$study" "$@" --no-limits --data-dir "$data" --out /tmp/out --force || exit
  cat /tmp/out/observations.jsonl >/dev/ttyS2
done
RUN
status=0
"$here/boot.sh" -t "$seconds" -m 2000 -i "$shift_of_clock" -f "$work/workahead" -f "$work/run" \
  "${carried[@]}" -o "$work/output" sh run "$work/data" "$@" || status=$?
tr -d '\r' <"$work/output" >"$observations"
exit "$status"
