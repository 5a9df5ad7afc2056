#!/bin/sh
# The core does no I/O and asks no clock: its objects call nothing but memory, text,
# JSON, the wire's codec, the heap, the table and the writer of metrics, which are as pure, and each other.
# usage: core_is_pure.sh libsluice_core.a libsluice_base.a
set -eu
library=$1 base=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -A "$library" 2>/dev/null >"$work/all"
nm -A "$base" 2>/dev/null | grep -E ':(heap|table|observed|exposition)\.c\.o:' >>"$work/all"
grep -E ' [TDRBVW] ' "$work/all" | awk '{print $NF}' | sort -u >"$work/own"
grep -E ' U ' "$work/all" | awk '{print $NF}' | sort -u >"$work/calls"
test -s "$work/calls" || { echo "no core objects in $library"; exit 1; }

allowed='^(calloc|realloc|malloc|free|mem(cpy|set|move|cmp|chr|mem)|str(len|cmp|ncmp)|v?snprintf'
allowed="$allowed|json_.*|buffer_.*|message_.*|text_[a-z_]*|jobs_next|url_[a-z]*|name_is_valid|(outcome|stage|fault|refusal)_.*"
allowed="$allowed|handler_[a-z_]*|nearest_[a-z]*|(times|traces)_next|metric_get|qsort"
allowed="$allowed|__(v?snprintf|mem[a-z]*|strcpy)_chk|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
allowed="$allowed|__(asan|ubsan|tsan|gcov|sanitizer|llvm)_.*)\$"
comm -23 "$work/calls" "$work/own" | grep -Ev "$allowed" >"$work/foreign" || true
if [ -s "$work/foreign" ]; then
    echo "the core calls:"
    cat "$work/foreign"
    exit 1
fi
