/*
 * edit_text.h - the text of a file under edit: its lines, where a part of it stands, how lines are
 * shown. Lines are counted from 1; what follows the last newline is a line unless it is empty.
 * Pure.
 */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_TEXT_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_TEXT_H

#include "common/base/buffer.h"
#include "workers/sandbox/output.h"

enum { EDIT_MATCHES_MAX = 100 };

size_t edit_count_lines(struct slice text);
/* Where line `line` begins; the text's length when there are fewer. */
size_t edit_line_start(struct slice text, size_t line);
size_t edit_line_at(struct slice text, size_t offset);

struct edit_matches {
    size_t count; /* overlapping ones too; counting stops at EDIT_MATCHES_MAX */
    size_t first; /* offset */
    size_t lines[EDIT_MATCHES_MAX];
};
/* `part` is not empty. */
void edit_find(struct slice text, struct slice part, struct edit_matches *ret);

/* The line most like the first line of `part` that is not blank; false: none is like it. */
bool edit_find_nearest(struct slice text, struct slice part, size_t *ret_line);
/* That line, without its end. */
struct slice edit_line(struct slice text, size_t line);

/* Lines from..to as `cat -n` shows them. */
void edit_show(struct output *out, struct slice text, size_t from, size_t to);

/* Whether every line ends with CR LF; such text is edited without the CRs. */
bool edit_is_crlf(struct slice text);
bool edit_drop_cr(struct slice text, struct buffer *out);
bool edit_add_cr(struct slice text, struct buffer *out);

#endif
