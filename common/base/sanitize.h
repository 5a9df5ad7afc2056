/*
 * sanitize.h - text of others (agents, models, tasks, peers, images) on its way to a terminal or a log.
 * Nothing in it steers: control characters (C0, DEL, C1), those that turn the direction of writing
 * around or end a line, and bytes that are no UTF-8 are shown as '?'. All that this project's
 * programs print and log of others goes through here; JSON has escapes for the same characters.
 */
#ifndef SLUICE_COMMON_BASE_SANITIZE_H
#define SLUICE_COMMON_BASE_SANITIZE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/slice.h"

/* Bytes of the character that `text` (not empty) starts with, at least 1. *ret_steers: its number,
 * U+FFFD for a byte that is no UTF-8; 0 where it steers nothing. '\n' and '\t' steer. */
size_t sanitize_next(struct slice text, uint32_t *ret_steers);

/* In place, so that nothing steers; with `keeps_lines` '\n' and '\t' stay. Returns the length, which
 * never grows; nothing is written behind it. */
size_t sanitize(char *text, size_t len, bool keeps_lines);

/* As printf, tame; lines are kept. */
void sanitize_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sanitize_vprint(FILE *out, const char *format, va_list args);

#endif
