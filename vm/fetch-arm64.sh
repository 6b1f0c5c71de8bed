#!/usr/bin/env bash
# Prints a directory with what boots a guest on Arm (boot.sh -a arm64), fetching it once: `vmlinuz`,
# a Linux kernel, and `busybox`, static. Both are from Debian packages that apt verifies.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/workahead/vm/arm64
suite=trixie

fail() {
  echo "fetch-arm64: $*" >&2
  exit 1
}

if [ -e "$cache/vmlinuz" ] && [ -e "$cache/busybox" ]; then
  echo "$cache"
  exit
fi
command -v apt-get >/dev/null || fail "no apt-get: put a kernel and a static busybox into $cache"
# shellcheck source=vm/debian.sh
source "$here/debian.sh"
private_apt "$cache/apt" arm64
update "$suite" || fail "apt-get update: see $apt/update.log"

work=$cache/unpack
rm -rf "$work"
mkdir -p "$work"
# The flavour of virtual machines, a third of the size.
kernel=$(apt-cache "${private[@]}" pkgnames linux-image- |
  grep -E '^linux-image-[0-9].*-cloud-arm64$' | sort -V | tail -n 1)
[ -n "$kernel" ] || fail "no kernel for virtual machines in $suite"
(cd "$work" &&
  apt-get "${private[@]}" download "$kernel" busybox-static >"$apt/download.log" 2>&1) ||
  fail "apt-get download: see $apt/download.log"
for deb in "$work"/*.deb; do dpkg -x "$deb" "$work/root"; done
mv "$work/root/boot/vmlinuz-${kernel#linux-image-}" "$cache/vmlinuz.workahead-tmp"
mv "$(find "$work/root" -path '*/bin/busybox' -type f)" "$cache/busybox"
mv "$cache/vmlinuz.workahead-tmp" "$cache/vmlinuz"
rm -rf "$work"
echo "$cache"
