#!/usr/bin/env bash
# bash tests/format.sh - lays every .c and .h out as .clang-format says, with clang-format 14 (Debian 12's), to which
# tests/system/structure/test_format.py holds them.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
git ls-files '*.c' '*.h' | xargs -P "$(nproc)" -n 20 "$format" -i
