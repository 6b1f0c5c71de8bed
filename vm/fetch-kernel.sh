#!/usr/bin/env bash
# Prints the path of a Linux kernel with sched_ext, fetching it once: a Debian package that apt
# verifies, kept outside of Git. Nothing of the host's own package lists is touched.
#
#   vm/fetch-kernel.sh          the first that there is of vm/kernels.txt, then any other from 6.16
#   vm/fetch-kernel.sh next     another one: the one that was printed does not work, and is removed
#   vm/fetch-kernel.sh config   keeps its configuration beside it, too, and prints the path of that:
#                               schedulers of the scx project read it as /boot/config-VERSION
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/workahead/vm
# The second moves, and a mirror that lags shows it when it has expired: then the first alone.
suites=("trixie-backports sid" trixie-backports)

fail() {
  echo "fetch-kernel: $*" >&2
  exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "the guest is x86-64; this machine is $(uname -m)"
mkdir -p "$cache/rejected"
if [ "${1:-}" = config ]; then
  version=$("$0")
  version=${version##*/vmlinuz-}
  [ -e "$cache/config-$version" ] || only=$version
fi
for kept in "$cache"/vmlinuz-*; do
  [ -e "$kept" ] || continue
  if [ -n "${only:-}" ]; then
    break
  elif [ "${1:-}" = config ]; then
    echo "$cache/config-$version"
    exit
  elif [ "${1:-}" = next ]; then
    touch "$cache/rejected/${kept##*/vmlinuz-}"
    rm -f "$kept" "$cache/config-${kept##*/vmlinuz-}"
    shift
  else
    echo "$kept"
    exit
  fi
done
command -v apt-get >/dev/null ||
  fail "no apt-get: put a kernel with sched_ext at $cache/vmlinuz-VERSION"
# shellcheck source=vm/debian.sh
source "$here/debian.sh"
private_apt "$cache/apt" amd64
update "${suites[0]}" || update "${suites[1]}" || fail "apt-get update: see $apt/update.log"

# Flavour "cloud": what a virtual machine needs, in a third of the size. Unsigned variants and
# debug symbols have other names.
known=$(apt-cache "${private[@]}" pkgnames linux-image- |
  sed -n 's/^linux-image-\(.*-cloud-amd64\)$/\1/p' |
  grep -E '^[0-9]+\.[0-9]+\.[0-9]+' | sort -V)
fresh=$(awk -F. '$1 > 6 || ($1 == 6 && $2 + 0 >= 16)' <<<"$known")
wanted=$({
  while read -r prefix; do
    case $prefix in '' | '#'*) continue ;; esac
    grep "^${prefix//./\\.}" <<<"$fresh" | sort -rV || true
  done <"$here/kernels.txt"
  echo "$fresh"
} | awk 'NF && !seen[$0]++')

for version in ${only:-$wanted}; do
  [ -e "$cache/rejected/$version" ] && continue
  work=$cache/unpack
  rm -rf "$work"
  mkdir -p "$work"
  # From 6.19 on the image itself lies in linux-binary-VERSION, its configuration in another.
  for package in "linux-image-$version" "linux-binary-$version" "linux-base-$version"; do
    (cd "$work" && apt-get "${private[@]}" download "$package" >>"$apt/download.log" 2>&1) || true
  done
  for deb in "$work"/*.deb; do
    [ -e "$deb" ] && dpkg -x "$deb" "$work/root"
  done
  config=$(find "$work/root" -name "config-$version" -type f 2>/dev/null | head -n 1)
  [ -z "$config" ] || mv "$config" "$cache/config-$version"
  if [ -n "${only:-}" ]; then
    rm -rf "$work"
    [ -n "$config" ] || fail "no configuration of $version in its packages"
    echo "$cache/config-$version"
    exit
  fi
  image=$(find "$work/root" \( -name "vmlinuz-$version" -o -name vmlinuz \) -size +1000k \
    2>/dev/null | head -n 1)
  if [ -n "$image" ]; then
    mv "$image" "$cache/vmlinuz-$version.workahead-tmp"
    rm -rf "$work"
    mv "$cache/vmlinuz-$version.workahead-tmp" "$cache/vmlinuz-$version"
    echo "$cache/vmlinuz-$version"
    exit
  fi
done
rm -rf "$cache/unpack"
fail "no kernel with sched_ext could be fetched from $mirror ($suites): see $apt/download.log"
