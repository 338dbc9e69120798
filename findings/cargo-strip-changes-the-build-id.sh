#!/bin/sh
# What: `strip = true` in a profile of cargo makes the linker strip, and the linker computes the GNU build id from what it writes. So the
#       program that is shipped has another build id than the same program built without `strip`, and symbols of the second one never match
#       stacks of the first one. `strip` run on the finished program keeps the id.
# Expected: the same sources, compiler and flags have one build id, stripped or not.
# Seen with: cargo and rustc 1.95.0, GNU ld 2.40 (Debian 12): three builds, two ids.
# For users: build once with debug information, upload that program, and ship a copy made by `strip -o`.
# Needs: cargo, cc, binutils. Fails if the behaviour changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "shop"
version = "1.0.0"
edition = "2021"
[profile.release]
debug = 1
[profile.stripped]
inherits = "release"
strip = true
TOML
echo 'fn main() { println!("{}", std::env::args().count()); }' > src/main.rs
id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }
export RUSTFLAGS="-C link-arg=-Wl,--build-id=sha1" CARGO_TARGET_DIR="$folder/target"
cargo build --quiet --release
cargo build --quiet --profile stripped
strip -o shop-stripped target/release/shop
with=$(id target/release/shop)
by_linker=$(id target/stripped/shop)
by_strip=$(id shop-stripped)
echo "with debug information  $with"
echo "strip = true            $by_linker"
echo "strip -o                $by_strip"
[ "$with" != "$by_linker" ] && [ "$with" = "$by_strip" ]
