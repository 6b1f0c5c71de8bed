#!/usr/bin/env bash
# Boots a kernel in QEMU with an initramfs of static busybox and the given files, runs a command in
# it, shows its output and exits with its status; 124 where none came back (a panic, or too late).
#
#   vm/boot.sh [-a arm64] [-k KERNEL] [-m MEGABYTES] [-s SMP] [-t SECONDS] [-i SHIFT] [-f FILE]...
#              [-d PATH]... [-o FILE] COMMAND [WORD]...
#
# FILEs lie in /payload, the working directory and first in PATH; PATHs, files or whole trees, where
# they lie here. Programs bring the libraries they need. All of it is memory of the guest: raise -m.
# -o's FILE has the command's writes to /dev/ttyS2 afterwards: text, its lines end in CR LF.
# With -i an instruction takes 2^SHIFT ns of the guest's time, however long it takes here: what else
# the host does can't be seen there, and sleeping takes next to none. CPUs take turns of 16384
# instructions.
# Two cores of two threads by default. Emulated by one thread (tcg,thread=single): with several,
# kernels died in patched code while a scheduler was attached. Without cmpxchg16b: QEMU 7.2 lost the
# flags of one when an interrupt came next, and the kernel died. Linux 6.18 has memory for timers of
# BPF programs without that instruction only from slabs that it checks. No disk, no network.
# With -a arm64 it is an Arm processor whose PMU counts instructions and cycles (-i is needed: QEMU
# counts none by the host's clock). Programs must be static there. QEMU has one count of
# instructions for all CPUs: with one CPU, the default, it is that CPU's.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
architecture='' kernel='' memory=768 smp='' seconds=120 files=() paths=()
output=/dev/null clock=()
# A CPU's turn lasts until some timer is due, or it executes PAUSE, or interrupts another. The guest
# doesn't know of turns: where they are long, programs that never end one early do more in what it
# takes for a second than others. A filter of nothing has a timer.
counted() {
  clock=(-icount "shift=$1,sleep=off" -netdev hubport,id=nothing,hubid=0
    -object "filter-buffer,id=turns,netdev=nothing,queue=all,interval=$(((16384 << $1) / 1000))")
}
while getopts a:k:m:s:t:i:f:d:o: option; do
  case $option in
  a) architecture=$OPTARG ;;
  k) kernel=$OPTARG ;;
  m) memory=$OPTARG ;;
  s) smp=$OPTARG ;;
  t) seconds=$OPTARG ;;
  i) counted "$OPTARG" ;;
  f) files+=("$OPTARG") ;;
  d) paths+=("$OPTARG") ;;
  o) output=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
fail() {
  echo "boot.sh: $*" >&2
  exit 2
}

[ $# -gt 0 ] || fail "usage: boot.sh [-k KERNEL] [-f FILE]... COMMAND [WORD]..."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An oops is a panic and a panic the end, so that a broken kernel can't pass.
words="quiet panic=-1 oops=panic mitigations=off random.trust_cpu=on nokaslr"
case $architecture in
'')
  [ -n "$kernel" ] || kernel=$("$here/fetch-kernel.sh")
  : "${smp:=4,sockets=1,cores=2,threads=2}"
  busybox=busybox
  qemu=(qemu-system-x86_64 -cpu qemu64,-cx16,+rdrand -serial stdio
    -serial "file:$work/status" -serial "file:$output")
  words+=" console=ttyS0 slab_debug=F,kmalloc-* tsc=reliable"
  ;;
arm64)
  fetched=$("$here/fetch-arm64.sh")
  : "${kernel:=$fetched/vmlinuz}" "${smp:=1}"
  busybox=$fetched/busybox
  # The machine has one port of its own. The others are PCI's, the first for nothing, so that they
  # have the same names as above.
  qemu=(qemu-system-aarch64 -machine virt -cpu max -serial stdio
    -chardev null,id=none -device pci-serial,chardev=none
    -chardev "file,id=status,path=$work/status" -device pci-serial,chardev=status
    -chardev "file,id=output,path=$output" -device pci-serial,chardev=output)
  # Its tests of ciphers take half a minute of the guest's time from everything else.
  words+=" console=ttyAMA0 cryptomgr.notests"
  ;;
*) fail "no guest of architecture $architecture" ;;
esac
for program in "${qemu[0]}" "$busybox" cpio; do
  command -v "$program" >/dev/null || fail "no $program: run cargo xtask setup"
done

# The guest's time-outs follow the host's clock, so QEMU goes before other programs where permitted.
renice -n -5 -p $$ >/dev/null 2>&1 || true
root=$work/initrd.d
mkdir -p "$root"/{bin,proc,sys,dev,tmp,payload,boot}
config=$(dirname "$kernel")/config-${kernel##*/vmlinuz-}
[ ! -e "$config" ] || cp "$config" "$root/boot/"
cp "$(command -v "$busybox")" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
# A program that isn't static brings its libraries.
libraries() {
  for library in $(find -L "$@" -type f -perm -u+x -exec ldd {} + 2>/dev/null |
    grep -o '/[^ ]* (' | cut -d ' ' -f 1 | sort -u); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}
for file in "${files[@]}"; do
  cp -aL "$file" "$root/payload/"
  libraries "$file"
done
for path in "${paths[@]}"; do
  (cd / && cp -a --parents "${path#/}" "$root/")
  libraries "$path"
done
printf '%q ' "$@" >"$root/payload/.command"
cat >"$root/init" <<'INIT'
#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tracefs tracing /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mount -t cgroup2 cgroup /sys/fs/cgroup 2>/dev/null
mkdir /dev/shm && mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
ifconfig lo up
hostname guest
export PATH=/payload:/bin HOME=/tmp
cd /payload
sh ./.command </dev/null
echo $? >/dev/ttyS1
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"

status=0
timeout -k 5 "$seconds" "${qemu[@]}" -accel tcg,thread=single "${clock[@]}" \
  -smp "$smp" -m "$memory" -nodefaults -no-user-config -display none -no-reboot \
  -kernel "$kernel" -initrd "$work/initrd" -append "$words" </dev/null || status=$?
answer=$(tr -dc 0-9 <"$work/status" 2>/dev/null || true)
[ -n "$answer" ] ||
  echo "boot.sh: the guest gave no status back within ${seconds} s (QEMU: $status)" >&2
exit "${answer:-124}"
