/*
 * text.h - text of unknown origin made fit to send: the wire takes only UTF-8 without NUL.
 */
#ifndef SLUICE_COMMON_BASE_TEXT_H
#define SLUICE_COMMON_BASE_TEXT_H

#include "common/base/slice.h"

/* Every byte that is not part of valid UTF-8 becomes '?', in place. */
void text_repair(char *text);
/* So does what steers a terminal; for sentences, which people read. */
void text_sanitize(char *text);
/* The longest start of text of at most `max` bytes that cuts no character in two. */
struct slice text_cut(const char *text, size_t max);
struct slice text_cut_slice(struct slice text, size_t max);
/* The longest end of text of at most `max` bytes that cuts no character in two. */
struct slice text_tail_slice(struct slice text, size_t max);
/* Without the blanks and line ends at its end, or at both ends. */
struct slice text_trim_right(struct slice text);
struct slice text_trim(struct slice text);
/* White space as Python's str has it, Unicode's: bytes of it that `text` begins with, or 0; and text without it at an
 * end. */
size_t text_space_at(struct slice text);
struct slice text_strip_left(struct slice text);
struct slice text_strip_right(struct slice text);
struct slice text_strip(struct slice text);
/* Without the byte order mark that some editors put before the first line. */
struct slice text_without_mark(struct slice text);
/* Where `what` stands last; NULL: nowhere. */
const uint8_t *text_find_last(struct slice text, const char *what);
/* What is behind the last `what`, or all of it. */
struct slice text_behind_last(struct slice text, const char *what);
/* Whether it is one of "one|of|these". */
bool text_is_one_of(const char *text, const char *words);

/*
 * Whether brackets of this JSON are nested no deeper than `levels`. Asked before it is parsed in a
 * fiber: parsing, walking and freeing recurse at every level, and a fiber's stack is small.
 */
bool text_is_shallow(struct slice json, int levels);

enum { TEXT_LEVELS_MAX = 64 }; /* of what others send */

#endif
