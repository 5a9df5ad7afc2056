/*
 * evaluator_sandbox.h - the sandbox of an evaluator: fresh, of image, init layer and run layer, or of an image of its
 * own and artifacts (own_image.h), and over them one
 * more layer with the evaluator's files. That layer is made out here: whatever the agent left at
 * those paths (a symlink to /dev/null, a directory without rights) is covered and decides nothing,
 * and a reward file that the agent wrote is hidden; of a verifier, all of the directory of its rewards. Beside that,
 * /run/sluice holds what is to be judged (judged.h).
 *
 * Where the task is evaluated in the agent's own sandbox (job.h: agents) it is that one, as it is, with the agent's
 * processes at work: files at those paths are replaced, and the reward's place is made anew.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATOR_SANDBOX_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATOR_SANDBOX_H

#include "workers/stages/sandbox/stage_sandbox.h"

/* `stage` is all zero but for its part; stage_sandbox_close it whatever happened.
 * Errors are those of stage_end_failed. */
int evaluator_sandbox_open(struct stage_sandbox *stage, struct job *job, struct fail *fail);
/* Without the agent's files, and without /run/sluice's: of image, init layer and the evaluator's files. */
int evaluator_sandbox_open_fresh(struct stage_sandbox *stage, struct job *job, struct fail *fail);
/*
 * What was opened, however far: it goes back where the agent goes on in it (job.h: agent_goes_on), and is closed
 * else.
 */
void evaluator_sandbox_close(struct stage_sandbox *stage, struct job *job);
/*
 * Then, before the agent goes on: takes away what the evaluator had there, TASK_STEP_TESTS, its rewards and
 * /run/sluice. 0; -EINVAL: those inside did not let it be; else negative errno.
 */
int evaluator_sandbox_clear(struct stage_sandbox *agents, struct job *job, struct fail *fail);

#endif
