/*
 * judged.h - what an evaluator judges, beside the files that the agent left: its last words, the task, and the
 * conversation of the run's record in words. For handlers as JSON, for whatever runs in the evaluator's sandbox as
 * files of /run/sluice, which nothing inside can write to:
 *
 *     answer            the agent's last words; empty where there are none
 *     task.json         the task, as submitted, without its solution
 *     messages.jsonl    an object a line: role, content and, of a call, tool and exit_status; empty without a record
 *
 * In the agent's own sandbox they are there from the evaluation on.
 *
 * Of a conversation longer than JUDGED_MESSAGES_MAX the messages at its front are left out.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_JUDGED_H
#define SLUICE_WORKERS_EVALUATORS_JUDGED_H

#include "workers/jobs/job.h"

enum { JUDGED_MESSAGES_MAX = 16 << 20 }; /* bytes */

/* Appends the conversation, as a list or as lines. Nothing where the job has no record. Awaits. 0, -EBADMSG,
 * -ENOMEM. */
int judged_messages(const struct job *job, bool as_lines, struct buffer *out, struct fail *fail);
/* Writes the files. */
int judged_write(struct sandbox *sandbox, const struct job *job, struct fail *fail);
/* Takes the files away again. */
void judged_clear(struct sandbox *sandbox);

#endif
