#!/bin/sh
# Makes `shop`, `till` and `common.debug`: two programs whose common debug information `dwz` has moved to a third file. They are in the
# repository because few machines have `dwz`. Made with GCC 12.2 and dwz 0.15 for x86_64. `pay` is 0x10c after the start of the program.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here/shop.c" "$folder/"
cd "$folder"
cc -g -O1 -nostdlib -static -fno-asynchronous-unwind-tables -fdebug-prefix-map="$folder=." -Wl,--build-id=sha1 -Wl,-z,noseparate-code -o shop shop.c
cp shop till
dwz -m common.debug shop till
cp shop till common.debug "$here/"
nm shop | grep ' pay$'
