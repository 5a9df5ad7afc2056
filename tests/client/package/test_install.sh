#!/usr/bin/env bash
# What is installed works from where it is: the programs find each other, and a C program builds with
# pkg-config against the shared library and against the archive. SLUICE_SANITIZE as in the build.
set -euo pipefail
prefix=$(mktemp -d)
broker=
finish() {
    [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
    rm -rf "$prefix"
}
trap finish EXIT

cmake --install "$SLUICE_BINARY_DIR" --prefix "$prefix" >"$prefix/log" || { cat "$prefix/log"; exit 1; }
libraries=$(dirname "$(find "$prefix" -name libsluice.a)")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries
flags=(-Wall -Wextra -Werror)
[ -z "${SLUICE_SANITIZE:-}" ] || flags+=("-fsanitize=$SLUICE_SANITIZE")
pkg() { pkg-config "$@" sluice; }

cp "$SLUICE_SOURCE_DIR/client/hello.c" "$prefix/hello.c"
cc "${flags[@]}" "$prefix/hello.c" $(pkg --cflags --libs) -o "$prefix/hello-shared"
# Names of its own that the library uses inside too: they may not clash.
printf 'int refuse(void); int refuse(void) { return 1; }\nint buffer_append(void); int buffer_append(void) { return 2; }\n' \
    >"$prefix/own.c"
cc "${flags[@]}" "$prefix/hello.c" "$prefix/own.c" $(pkg --cflags) "$libraries/libsluice.a" \
    $(pkg --static --libs-only-l | sed 's/-lsluice//') -o "$prefix/hello-static"
readelf -d "$prefix/hello-shared" | grep -q 'libsluice.so.0'
! readelf -d "$prefix/hello-static" | grep -q 'libsluice'

coproc fake { exec "$SLUICE_FAKE_BROKER"; }
broker=$fake_PID
read -r url <&"${fake[0]}"
for order in "hello" "finish 1"; do
    echo "$order" >&"${fake[1]}"
    read -r _ <&"${fake[0]}"
done
export SLUICE_BROKER=$url
for program in hello-shared hello-static; do
    said=$("$prefix/$program")
    grep -q '^hello/1: ok, 3 tokens, 2 of them sampled, reward 1$' <<<"$said" || { echo "$program said: $said"; exit 1; }
done

"$prefix/bin/sluice" broker --help | grep sluice-broker >/dev/null # not -q: who is cut off while writing fails
"$prefix/bin/sluice" worker --help | grep sluice-worker >/dev/null
echo "good"
