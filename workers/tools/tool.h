/*
 * tool.h - what a model can be given to work with: the contract of a tool. A tool is one file in this folder and one
 * row of the table in tools.c; its row is what the prompt shows, what a call is checked against, and docs/tools.md.
 *
 * Whatever a model asks for, it gets an answer in words that help it (is_error says that it is a
 * refusal). A negative errno is the end of the rollout: the sandbox or the node failed, the fiber
 * was cancelled or is out of time, or (-ENOEXEC) a program that the tool needs does not start in
 * the task's image. Once a call was made in the sandbox that may be the agent's doing, and is
 * answered in words like anything else.
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

enum { TOOL_ARGUMENTS_MAX = 10, TOOLBOX_MAX = 64 };

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
    /* A JSON Schema of an object, which the model is told and calls are checked against in place of the rows: what
     * these cannot say is said there. NULL: the rows are all. */
    const json_t *parameters;
    void *self; /* the state of one that has no open */
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

/* Tools that are not in the table, by name; the rows live as long as their source. */
struct tool_source {
    /* 0, or as toolbox_add; -EOWNERDEAD: nobody offers it here. */
    int (*find)(struct tool_source *source, const char *name, const struct tool **ret, struct fail *fail);
};

/* ---- for tools ------------------------------------------------------------------------- */

/* The result's words. 0, or -ENOMEM with fail. */
int tool_say(struct tool_result *result, struct fail *fail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As tool_say, with bytes that may hold anything. */
int tool_say_bytes(struct tool_result *result, struct slice bytes, struct fail *fail);
/* As tool_say; marks it as an error. */
int tool_refuse(struct tool_result *result, struct fail *fail, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void tool_result_finish(struct tool_result *result);

#endif
