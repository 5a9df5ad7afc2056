/* manual.h - a command line for `man` and for shells that complete it:
 * what the hidden options of all programs print. */
#ifndef SLUICE_COMMON_CMDLINE_MANUAL_H
#define SLUICE_COMMON_CMDLINE_MANUAL_H

#include "common/cmdline/cmdline.h"

/* Whole: a page of man(7), of section 1. `name`: of the page, "sluice-submit"; `brief`:
 * one line without a full stop. */
void manual_head(const char *name, const char *brief, FILE *out);
void manual_section(const char *title, FILE *out);
/* Text whose lines are filled; lines that begin with a space, and those after an empty one, begin anew. */
void manual_text(const char *text, FILE *out);
/* Lines as they are. */
void manual_lines(const char *lines, FILE *out);
void cmdline_manual(const struct cmdline *line, FILE *out);

/*
 * A line for each option, between tabs: "--name", what its value is (none, file, directory, word, text), the words,
 * what it means. Before them one, "add choice", for each word that the first argument may be.
 */
void cmdline_completion(const struct cmdline *line, FILE *out);

#endif
