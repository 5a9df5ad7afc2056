/*
 * tool.h - what a model can be given to work with: the contract of a tool, and the tools of one
 * rollout. A tool is one file in this folder and one row of the table in tools.c; its row is what
 * the prompt shows, what a call is checked against, and docs/tools.md.
 *
 * Whatever a model asks for, it gets an answer in words that help it (is_error says that it is a
 * refusal). A negative errno is the end of the rollout: the sandbox or the node failed, the fiber
 * was cancelled or is out of time, or (-ENOEXEC) a program that the tool needs does not start in
 * the task's image. Once a call was made in the sandbox that may be the agent's doing, and is
 * answered in words like anything else.
 *
 * One fiber uses a toolbox, one call at a time.
 */
#ifndef SLUICE_WORKERS_TOOLS_TOOL_H
#define SLUICE_WORKERS_TOOLS_TOOL_H

#include <jansson.h>

#include "schemas/task/task.h"
#include "workers/sandbox/sandbox.h"

struct tool;
struct toolbox;

/* ---- a row ---------------------------------------------------------------------------- */

enum tool_type { TOOL_STRING, TOOL_INTEGER, TOOL_BOOLEAN, TOOL_INTEGERS };

struct tool_argument {
    const char *name;
    enum tool_type type;
    bool required;
    double min, max;   /* a number's value, a string's characters, a list's elements; 0, 0: any */
    const char *words; /* of a string: "one|of|these", or NULL */
    const char *doc;   /* for the model */
};

const char *tool_type_word(enum tool_type type); /* as JSON Schema has it */

enum { TOOL_ARGUMENTS_MAX = 10, TOOLBOX_MAX = 16 };

/* What a call gave. Zeroed by who calls; text is free()'s. */
struct tool_result {
    char *text; /* for the model, at most limits->output_bytes and a line or two; NUL-terminated */
    size_t len;
    bool is_error;   /* the call was refused, or what it did went wrong */
    bool is_refused; /* nothing was done: there is no such tool, or the arguments do not fit it */
    int status;      /* of a command: 0..255, 256 + signal; else 0, or 1 with is_error */
    double seconds;  /* filled in by toolbox_call */
    uint64_t total;  /* bytes it would have said without a limit */
    bool timed_out;
    bool is_final; /* the rollout ends with this call */
    char *answer;  /* is_final: the rollout's; free()'s */
    size_t images; /* pictures among the results, which the text names */
};

struct tool {
    const char *name, *doc; /* doc: for the model */
    bool needs_sandbox;
    struct tool_argument arguments[TOOL_ARGUMENTS_MAX]; /* ended by one without a name */
    /* Why this worker cannot offer it, in words; NULL: it can. The slot may be NULL. */
    const char *(*lacks)(const struct toolbox *box);
    /* The state of a rollout, made before its first call. 0; -ENOEXEC: a program of the image that
     * it needs does not start; or negative errno. May be NULL. */
    int (*open)(struct toolbox *box, void **ret_state, struct fail *fail);
    /*
     * `arguments` is an object that fits the rows above: required ones are there, null is absent.
     * 0 with *ret filled in, or negative errno, of which -ENOEXEC is none: what it was opened
     * with was there. May await; obeys the fiber's deadline.
     */
    int (*call)(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret, struct fail *fail);
    /* Never awaits. The sandbox may be gone already. Not called where open failed. */
    void (*close)(void *state);
};

const struct tool *tool_find(const char *name); /* NULL: no such tool */
const struct tool *tool_at(size_t i);           /* in the table's order; NULL: no more */

/* ---- for tools ------------------------------------------------------------------------- */

/* NULL where it was not given. */
const char *tool_string(const json_t *arguments, const char *name);
int64_t tool_integer(const json_t *arguments, const char *name, int64_t otherwise);
bool tool_boolean(const json_t *arguments, const char *name); /* false where not given */

/* The result's words. 0, or -ENOMEM with fail. */
int tool_say(struct tool_result *result, struct fail *fail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As tool_say, with bytes that may hold anything. */
int tool_say_bytes(struct tool_result *result, struct slice bytes, struct fail *fail);
/* As tool_say; marks it as an error. */
int tool_refuse(struct tool_result *result, struct fail *fail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- for prompts, docs and callers ----------------------------------------------------- */

/* {"type": "function", "function": {"name", "description", "parameters": JSON Schema}}; NULL: no
 * memory. The caller's. */
json_t *tool_describe(const struct tool *tool);
/* Whether `arguments` fits the tool's rows; false with a sentence for the model. */
bool tool_check(const struct tool *tool, const json_t *arguments, char *text, size_t size);

/* ---- the tools of one rollout ----------------------------------------------------------- */

struct search; /* the worker's web search: search.h */

struct toolbox {
    struct sandbox *sandbox;          /* NULL: none */
    const struct task_limits *limits; /* command_s and output_bytes bound each call */
    struct search *search;            /* NULL: this worker has none */
    /* Told what a command writes while it still runs; may be NULL. Must not await. */
    void (*on_output)(void *arg, struct slice bytes);
    void *on_output_arg;
    /* the rest is toolbox.c's */
    const struct tool *tools[TOOLBOX_MAX];
    void *states[TOOLBOX_MAX];
    bool opened[TOOLBOX_MAX];
    size_t count;
    bool has_acted; /* a call was made in the sandbox */
};

/* Adds a tool by its name. 0; -EINVAL: no such tool, or it is there already or lacks a sandbox;
 * -ENOSYS: this worker cannot offer it; each with a sentence. */
int toolbox_add(struct toolbox *box, const char *name, struct fail *fail);
/*
 * Checks and makes one call. 0 with *ret (tool_result_finish it) also when the model's call was
 * wrong: an unknown tool, arguments that are no object or do not fit. Else negative errno.
 */
int toolbox_call(struct toolbox *box, const char *name, const json_t *arguments, struct tool_result *ret,
                 struct fail *fail);
/* The tool of this name, or the one whose name is the most like it; NULL: the box is empty. */
const struct tool *toolbox_nearest(const struct toolbox *box, const char *name);
/* Closes what was opened. NULL-safe where zeroed; never awaits. */
void toolbox_close(struct toolbox *box);
void tool_result_finish(struct tool_result *result);

#endif
