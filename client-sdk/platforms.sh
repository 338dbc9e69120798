#!/bin/sh
# Type-checks the SDK's Rust code for other systems without their C compilers, with all optional features except the HTTP client.
# C objects are empty files in a separate folder, so the result cannot be linked or run.
set -eu
cargo=${CARGO:-cargo}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/platforms"
tools="$CARGO_TARGET_DIR/tools"
mkdir -p "$tools"
cat > "$tools/cc" <<'TOOL'
#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -o) : > "$2" ;;
    -Fo*) : > "${1#-Fo}" ;;
    -out:*) : > "${1#-out:}" ;;
    *.a) : > "$1" ;;
  esac
  shift
done
TOOL
chmod +x "$tools/cc"
tools=$(cd "$tools" && pwd)
installed=$(rustup target list --installed)
for target in aarch64-apple-darwin aarch64-apple-ios aarch64-linux-android x86_64-linux-android x86_64-pc-windows-msvc; do
  if ! echo "$installed" | grep -qx "$target"; then
    echo "$target: not checked, rustup target add $target"
    continue
  fi
  name=$(echo "$target" | tr - _)
  env "CC_$name=$tools/cc" "AR_$name=$tools/cc" SDKROOT="$tools" RUSTFLAGS="-D warnings" \
    "$cargo" check --quiet --locked --target "$target" -p unjank -p unjank-columns -p unjank-monitors -p unjank-spool -p unjank-stack-sampler \
    --no-default-features --features unjank/tracing,unjank/test-kit,unjank/reqwest
  echo "$target: checked"
done
