/*
 * programs.h - the harnesses that are known by name (agent.harness), each a bash script that configures and starts the
 * program, which lies in /opt/harness/NAME or in the image. Where its model is the script knows from variables: below.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_PROGRAMS_H
#define SLUICE_WORKERS_AGENTS_PROXY_PROGRAMS_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

/* The file of the task's words, in /run/sluice. */
#define PROGRAM_PROMPT "prompt"

/* The whole script of the task's harness, whose model's context has so many tokens. */
void program_write(const struct task *task, uint64_t context_tokens, struct buffer *out);
/* The task's words, as a harness takes them: one text. */
void program_write_prompt(const struct task *task, struct buffer *out);

#endif
