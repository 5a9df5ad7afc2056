/*
 * runner.h - the script that runs code in a sandbox, and what it prints: a line for each of
 *
 *   missing PROGRAM                         the image has no such program, and nothing was run
 *   compile STATUS MICROSECONDS OUT ERR     STATUS: an exit status, 128 + n for signal n; `time`: it was stopped
 *   run STATUS MICROSECONDS OUT ERR         OUT and ERR: base64 of its first bytes, `-` where there are none
 *   file PATH CONTENT                       a file that was asked for, both in base64
 */
#ifndef SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_RUNNER_H
#define SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_RUNNER_H

#include <jansson.h>

#include "client/gateway/sandboxfusion/languages.h"

#define RUNNER_FOLDER "/tmp/run_code"

enum {
    RUNNER_OUT_BYTES = 384 << 10,
    RUNNER_ERR_BYTES = 96 << 10,
    RUNNER_FILES_BYTES = 96 << 10, /* of all that are asked for */
    RUNNER_PRINTS_BYTES = 1 << 20
};

struct runner_plan {
    const struct language *language;
    double compile_s, run_s;
    bool has_stdin;        /* in RUNNER_FOLDER/stdin */
    const json_t *fetched; /* paths; may be NULL */
};

void runner_write(const struct runner_plan *plan, struct buffer *ret);

/* One line of what it printed: its words, which are borrowed; false: there are no more. */
struct runner_line {
    struct slice words[5];
    size_t count;
};
bool runner_next_line(struct slice text, size_t *at, struct runner_line *ret);

#endif
