/* help.h - a command line as pages: --help, and the docs of its options. */
#ifndef SLUICE_COMMON_CMDLINE_HELP_H
#define SLUICE_COMMON_CMDLINE_HELP_H

#include "common/cmdline/cmdline.h"

/* What every program and command has beside its tables; --help shows those that have a doc. */
enum { CMDLINE_OWN = 5 };
extern const struct option cmdline_own[CMDLINE_OWN];

void cmdline_help(const struct cmdline *line, FILE *out);
/* A section "## sluice submit" of the docs. */
void cmdline_markdown(const struct cmdline *line, FILE *out);
/* A table of them, for the docs. */
void options_markdown(const struct option *rows, size_t count, FILE *out);
/* As one would type it: "sluice submit TASKS.jsonl [OPTIONS]". */
void cmdline_synopsis(const struct cmdline *line, FILE *out);

/* ---- what a row says, for all pages ---- */

enum { OPTION_WORDS_SIZE = 80 };
/* How an option is written: "--name VALUE". */
void option_head(const struct option *option, char ret[OPTION_WORDS_SIZE]);
/* "prepare, prune: ", the verbs that it goes with, or "". */
const char *option_verbs(const struct option *option, char ret[OPTION_WORDS_SIZE]);
/* What holds when it is not given, or NULL when there is nothing to tell. */
const char *option_default(const struct option *option, char ret[OPTION_WORDS_SIZE]);
/* " Takes 1 to 1024." or "". */
const char *option_bounds(const struct option *option, char ret[OPTION_WORDS_SIZE]);
/* " May be repeated.", " Required." or "". */
const char *option_after(const struct option *option);

/* Text in a cell of such a table, which a | would end. */
void cmdline_cell(const char *text, FILE *out);
/* Lines, each two columns to the right. */
void cmdline_indented(const char *lines, FILE *out);
extern const char cmdline_units[]; /* what a TIME and a SIZE are, in a sentence */

#endif
