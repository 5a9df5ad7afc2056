#!/usr/bin/env bash
# bash tests/run.sh [--quick] [--preset NAME] [--no-engine] [CTEST OPTIONS...]
#
# Installs what is missing (Debian packages; a small real model and llama.cpp's server, cached),
# builds with warnings as errors, and runs every test, six at once for each core; those that fail
# so are run again, one at a time, and named: what fails alone, too, is the failure. The default
# preset is `debug`: AddressSanitizer and UndefinedBehaviorSanitizer. With `tsan`, a report of
# ThreadSanitizer in any process that any test started is a failure too. --no-engine leaves the
# real model out; its tests then say that they were skipped. --quick runs the unit tests alone, of
# preset `release`: seconds. Other options go to ctest (-R REGEX, -L LABEL, -j N, ...).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=debug
engine=yes
packages=(clang-format chromium prometheus) # the page is tested in Chromium, and metrics with promtool
only=()
while [ $# -gt 0 ]; do
    case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --no-engine) engine=no; shift ;;
    --quick) preset=release engine=no packages=(clang-format) only=(-L '^unit$'); shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) break ;;
    esac
done

bash .ci/packages.sh "${packages[@]}"
if [ $engine = yes ]; then
    settings=$(bash client/engine.sh) || {
        echo "no real engine: the tests that need one will be skipped" >&2
        settings=
    }
    for setting in $settings; do export "${setting?}"; done
fi

cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
set -- --parallel $((6 * $(nproc))) "${only[@]}" "$@"
if [ "$preset" != tsan ]; then
    status=0
    ctest --preset "$preset" "$@" || status=$?
    [ $status = 8 ] || exit $status # 8: tests have failed
    echo "Of these each is run again, alone: what fails only beside others is not fit for company, and to be mended." >&2
    exec ctest --preset "$preset" --rerun-failed
fi

# A process that is killed, or whose status nobody reads, still leaves its report.
rm -rf build/tsan/reports
mkdir -p -m 1777 build/tsan/reports # tests run as another user, too
failed=0
ctest --preset tsan "$@" || failed=$?
for report in build/tsan/reports/report.*; do
    [ -e "$report" ] || continue
    cat "$report" >&2
    failed=1
done
exit $failed
