#!/bin/sh
# A newcomer's first hour, by machine: makes a bare Debian 12 in a folder (debootstrap), copies the committed tree into it
# and runs bootstrap.sh there, where no compiler, no LLVM and no CUDA toolkit is. Needs root, debootstrap and the network.
#   tests/tools/clean_machine.sh [FOLDER] [build|demo|test…]      FOLDER is made when missing, and kept
set -eu
root=${1:-/tmp/clean-debian-12}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- build
repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)

if [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# Certificates that this machine's administrator added are needed there as well.
mkdir -p "$root/usr/local/share/ca-certificates"
cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true

umounts() { umount "$root/proc" "$root/dev" 2>/dev/null || true; }
trap umounts EXIT
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"

rm -rf "$root/tilec"
mkdir -p "$root/tilec"
git -C "$repository" archive HEAD | tar -x -C "$root/tilec"
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb chroot "$root" /tilec/bootstrap.sh "$@"
