#!/usr/bin/env bash
# Builds libzmq, czmq, libcurl and libmicrohttpd as static libraries without what Debian links into its own (Kerberos, PGM, systemd,
# LDAP, GnuTLS, ...), from Debian's sources of the versions that are installed, once, into a cache; prints
# their prefix, whose lib/pkgconfig is for PKG_CONFIG_PATH. For client/package.sh. What it says to people goes to stderr.
# SLUICE_CACHE says where the cache is (default ~/.cache/sluice).
set -euo pipefail

say() { echo "package: $*" >&2; }

version() { dpkg-query -W -f='${source:Version}' "$1"; }
zmq=zeromq3=$(version libzmq3-dev) czmq=czmq=$(version libczmq-dev) curl=curl=$(version libcurl4-openssl-dev)
httpd=libmicrohttpd=$(version libmicrohttpd-dev)

cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/package
made=$(cat "$0" <(echo "$zmq $czmq $curl $httpd $(cc -dumpfullversion)") | sha256sum | cut -c1-16)
prefix=$cache/$made
mkdir -p "$cache"

# Two at once: the second waits and finds everything there.
exec 9>"$cache/lock"
flock 9
if [ -e "$prefix/complete" ]; then
    echo "$prefix"
    exit
fi

rm -rf "$prefix"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$cache/build.log
: >"$log"
failed() {
    say "$1; the last lines of $log:"
    tail -n 5 "$log" >&2
    exit 1
}

# Debian's sources, without a change to how this machine's apt is set up, and without root.
fetch() {
    mkdir -p "$work/lists/partial" "$work/archives/partial"
    local uris
    uris=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Component: main' |
        grep -F "$(. /etc/os-release && echo "$VERSION_CODENAME")" | sort -u)
    [ -n "$uris" ] || { echo "no Debian archive in apt's sources" && return 1; }
    sed 's/^\(.*\) \(.*\)$/deb-src \1 \2 main/' <<<"$uris" >"$work/sources.list"
    apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
        -o Dir::Cache="$work" -o APT::Sandbox::User="$(id -un)")
    "${apt[@]}" update && cd "$work" && "${apt[@]}" source --download-only "$@"
}

# $1: the source package; the rest: options of cmake
build() {
    local source=$work/$1
    dpkg-source --no-check -x "$work/$1"_*.dsc "$source" || return 1
    shift
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig cmake -S "$source" -B "$source/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib "$@" &&
        cmake --build "$source/build" --target install
}

build_httpd() {
    local source=$work/httpd
    dpkg-source --no-check -x "$work/libmicrohttpd"_*.dsc "$source" || return 1
    (cd "$source" && ./configure --prefix="$prefix" --disable-shared --enable-static --with-pic --disable-https --disable-doc \
        --disable-examples --disable-curl && make -j "$(nproc)" install)
}

say "building static libraries from the sources of $zmq, $czmq, $curl and $httpd (some minutes, once)"
(fetch "$zmq" "$czmq" "$curl" "$httpd") >>"$log" 2>&1 || failed "the sources could not be fetched"
build zeromq3 -DBUILD_SHARED=OFF -DBUILD_TESTS=OFF -DWITH_PERF_TOOL=OFF -DWITH_DOCS=OFF -DWITH_LIBSODIUM=ON -DENABLE_CURVE=ON \
    -DWITH_LIBBSD=OFF -DWITH_TLS=OFF -DENABLE_DRAFTS=OFF -DENABLE_CPACK=OFF >>"$log" 2>&1 || failed "libzmq did not build"
sed -i -e 's/^Libs:.*/Libs: -L${libdir} -lzmq -lsodium -lstdc++/' -e '/private/d' "$prefix/lib/pkgconfig/libzmq.pc"
build czmq -DCZMQ_BUILD_SHARED=OFF -DBUILD_TESTING=OFF -DENABLE_DRAFTS=OFF -DCZMQ_WITH_UUID=OFF -DCZMQ_WITH_SYSTEMD=OFF \
    -DCZMQ_WITH_LZ4=OFF -DCZMQ_WITH_LIBCURL=OFF -DCZMQ_WITH_NSS=OFF -DCZMQ_WITH_LIBMICROHTTPD=OFF \
    >>"$log" 2>&1 || failed "czmq did not build"
build curl -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DUSE_NGHTTP2=OFF \
    -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DCURL_ZLIB=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
    -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_CA_FALLBACK=ON >>"$log" 2>&1 || failed "libcurl did not build"
sed -i -e 's/^Libs:.*/Libs: -L${libdir} -lcurl -lssl -lcrypto/' -e '/^Libs.private/d' "$prefix/lib/pkgconfig/libcurl.pc"
build_httpd >>"$log" 2>&1 || failed "libmicrohttpd did not build"
sed -i -e 's/^Libs:.*/Libs: -L${libdir} -lmicrohttpd -lpthread/' -e '/private/d' "$prefix/lib/pkgconfig/libmicrohttpd.pc"
touch "$prefix/complete"
echo "$prefix"
