/*
 * run.h - a rendering under way, or a template that is being read: its memory, and the first thing that went wrong.
 * Whoever may fail returns something harmless, and says so here; who loops looks at `code`.
 */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_RUN_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_RUN_H

#include "common/base/arena.h"
#include "common/base/buffer.h"
#include "common/base/fail.h"

/* Of a rendering, and of reading a template. */
enum {
    JINJA_STEPS_MAX = 4 << 20,   /* what keeps a worker from its other rollouts for some 0.1 s */
    JINJA_BYTES_MAX = 256 << 20, /* of all that it makes */
    JINJA_BYTES_MADE = 256,      /* are made in a step */
    JINJA_BYTES_READ = 32,       /* are looked at in one */
    JINJA_DEPTH_MAX = 160        /* of what stands within another, macros' calls included: a fiber's stack is small */
};

struct jinja_frame;
struct jinja_node;
struct jinja_value;
struct jinja_arguments;

struct jinja_run {
    struct arena *arena;
    struct fail *fail;
    int code;            /* 0, or what went wrong first */
    unsigned line;       /* of the template, where it is now */
    size_t steps, bytes; /* bytes: of the arena, and of texts that are not finished */
    unsigned depth;
    struct buffer *out;
    struct jinja_frame *globals, *frame;
    /* How a macro is called: evaluate.c knows expressions alone. */
    struct jinja_value (*call_macro)(struct jinja_run *run, const struct jinja_value *macro,
                                     const struct jinja_arguments *given);
};

/* NULL: no memory, or more than JINJA_BYTES_MAX, and that is said. Zeroed. */
void *jinja_alloc(struct jinja_run *run, size_t size);
/* To a text that jinja_string_of finishes, or to `out`; nothing after a failure. */
void jinja_append(struct jinja_run *run, struct buffer *text, const void *data, size_t len);
void jinja_append_str(struct jinja_run *run, struct buffer *text, const char *words);
/* One step, and those of looking at so many bytes; false: too many steps, or failed before. */
bool jinja_spend(struct jinja_run *run, size_t bytes);
/* The first failure counts. */
void jinja_fail(struct jinja_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where something begins that stands within another; false: too deep, or too many steps, or failed before. */
bool jinja_enter(struct jinja_run *run, unsigned line);
void jinja_leave(struct jinja_run *run);

#endif
