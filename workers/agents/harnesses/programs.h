/*
 * programs.h - the harnesses that are known by name (agent.harness): each is a program, which lies in
 * /opt/harness/NAME/bin or in the image, and a bash script (NAME.sh) that configures and starts it. Where its model is
 * the script knows from variables: programs.c.
 */
#ifndef SLUICE_WORKERS_AGENTS_HARNESSES_PROGRAMS_H
#define SLUICE_WORKERS_AGENTS_HARNESSES_PROGRAMS_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

/* The file of the task's words, in /run/sluice. */
#define PROGRAM_PROMPT "prompt"

enum { PROGRAMS_MAX = 16 };

struct program {
    const char *name, *file; /* the harness; what is executed */
    const unsigned char *script;
    const size_t *script_len;
};

/* NULL: beyond the last; there is none of that name. */
const struct program *program_at(size_t i);
const struct program *program_find(struct slice name);
/* "a, b, c". */
void program_list(char *text, size_t size);

/* The whole script of the task's harness, whose model's context has so many tokens. */
void program_write(const struct task *task, uint64_t context_tokens, struct buffer *out);
/* The task's words, as a harness takes them: one text. */
void program_write_prompt(const struct task *task, struct buffer *out);

#endif
