/*
 * cmdline.h - a program's command line, or that of one command of it, as a whole: its options (option.h) and its
 * arguments, what it says of itself, its exit statuses. All of this project's programs read theirs here, so all have
 * --help (-h), --version, and for other pages --help-markdown, --help-man and --help-completion (manual.h), take --name
 * VALUE and --name=VALUE, options and arguments in any order and only arguments after --, and refuse a wrong one in the
 * same words with exit status 2:
 *
 *     sluice-worker: --slots wants a number from 1 to 32768, not '0' (see sluice-worker --help)
 */
#ifndef SLUICE_COMMON_CMDLINE_CMDLINE_H
#define SLUICE_COMMON_CMDLINE_CMDLINE_H

#include <stdarg.h>
#include <stdio.h>

#include "common/cmdline/option.h"

enum { CMDLINE_FAILED = 1, CMDLINE_WRONG = 2 }; /* exit statuses */

struct option_table {
    const char *title; /* over its part of --help */
    const struct option *rows;
    size_t count;
};

struct cmdline_status {
    int status;
    const char *meaning;
};

/*
 * What the first argument may be, where all else depends on it: then only its own options (option.h: `of`) and
 * arguments are taken. `run` is for the program, which has a struct invocation of its own.
 */
struct invocation;
struct cmdline_verb {
    const char *name;
    const char *arguments; /* its own, a word each: "HOST [PORT]", "" for none */
    int (*run)(const struct invocation *in);
};

enum { CMDLINE_TABLES = 2, CMDLINE_ARGUMENTS_SIZE = 256 };
struct cmdline {
    const char *program;   /* "sluice-worker": who refuses */
    const char *command;   /* "submit"; NULL where the program has none */
    const char *arguments; /* as --help shows them, "" for none; NULL where there are verbs */
    size_t arguments_min, arguments_max;
    const struct cmdline_verb *verbs; /* then the number of arguments is theirs to say */
    size_t verb_count;
    const char *brief;                          /* one line, without a full stop */
    const char *doc;                            /* what else a reader needs, lines of at most 110 columns, or "" */
    const char *example;                        /* one or more lines of shell */
    struct option_table tables[CMDLINE_TABLES]; /* the first one is the command's own; a second one may be empty */
    const struct cmdline_status *statuses;
    size_t status_count;
    void (*more)(FILE *out);            /* what --help shows beside its options, or NULL */
    void (*before_markdown)(FILE *out); /* what its page of the docs has in front of it, or NULL */
};

struct cmdline_values {
    void *into[CMDLINE_TABLES]; /* the caller's, for each table */
    char **arguments;           /* what is no option, the verb with it; ended by NULL */
    size_t argument_count;
    const struct cmdline_verb *verb;                  /* NULL where there are none */
    bool help, version, markdown, manual, completion; /* is asked for: then nothing else is looked at */
};

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

/*
 * Reads argv[0..argc), which has no program's name in it, into what `into` points to, presets first. 0, or -EINVAL or
 * -ENOMEM with a sentence. The caller calls cmdline_finish in either case.
 */
int cmdline_parse(const struct cmdline *line, int argc, char **argv, struct cmdline_values *values, struct fail *fail);
void cmdline_finish(struct cmdline_values *values);

/*
 * The same, as a program begins: answers --help, --version and the other pages, and says what is wrong. -1 to go on;
 * else the exit status to end with.
 */
int cmdline_begin(const struct cmdline *line, int argc, char **argv, struct cmdline_values *values);

/* "program: ..." on stderr with a hint to --help; returns CMDLINE_WRONG. */
int cmdline_wrong(const struct cmdline *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cmdline_vwrong(const struct cmdline *line, const char *format, va_list args);

#endif
