/*
 * stage_sandbox.h - the sandbox of a job with the layers it stands on, opened and released together,
 * and what it means for the job when one of them fails.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_STAGE_SANDBOX_H
#define SLUICE_WORKERS_STAGES_SANDBOX_STAGE_SANDBOX_H

#include "schemas/trajectory/trajectory.h"
#include "workers/jobs/blame.h"
#include "workers/jobs/job.h"
#include "workers/layers/dir.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/sandbox/parents.h"

enum { STAGE_LAYERS_MAX = 60 };

enum stage_part { STAGE_AGENTS, STAGE_SETUPS, STAGE_EVALUATORS, STAGE_BUILDS };

/* Zero it first; stage_sandbox_close it whatever happened. */
struct stage_sandbox {
    struct layer_dir layers[STAGE_LAYERS_MAX]; /* lowest first */
    bool keeps[STAGE_LAYERS_MAX];              /* false: nobody else will want it unpacked */
    size_t layer_count;
    struct image_hold image; /* no path until it was found */
    struct sandbox *sandbox;
    struct forward *forwards[TASK_GRANTS_MAX]; /* closed with the sandbox */
    size_t forward_count;
    bool kernels;   /* set before opening: Python kernels will be started in it */
    bool has_model; /* set before opening: a harness will speak to its model at sandbox_take_listener(forward_count) */
    enum stage_part part; /* set before opening: whose network, user and variables hold, and whose image it is */
    const struct task_build *build; /* set before opening: of STAGE_BUILDS, whose network */
    enum fault fault;               /* whose fault the last failure of a stage_sandbox_* call was */
    int64_t closing_by_ms;          /* packing and looking whether all is whole end then; 0: neither has begun */
};

/* Adds the layer init left, with those of the task's build below it, or the one run left; nothing when the job names
 * none. */
int stage_sandbox_add_init(struct stage_sandbox *stage, const struct job *job, struct fail *fail);
/* Of the run's what eval.artifacts names, where the task has any; the image was found, and all that lies below was
 * added. */
int stage_sandbox_add_run(struct stage_sandbox *stage, const struct job *job, struct fail *fail);
/* All of the run's. */
int stage_sandbox_add_all(struct stage_sandbox *stage, const struct job *job, struct fail *fail);
/* The second's files in one directory alone, and without those that are git's. */
int stage_sandbox_add_run_below(struct stage_sandbox *stage, const struct job *job, const char *path,
                                struct fail *fail);
/* Adds the layers that a build made, lowest first. */
int stage_sandbox_add_parents(struct stage_sandbox *stage, const struct job *job, const struct parents *parents,
                              struct fail *fail);
/* Adds an empty directory to fill by hand (dirtree.h), gone with the sandbox. */
int stage_sandbox_add_own(struct stage_sandbox *stage, const struct job *job, const char **ret_path, struct fail *fail);
/* Finds the directory of the image, the task's or its evaluator's, unpacked if it must be, and holds it; once. */
int stage_sandbox_find_image(struct stage_sandbox *stage, const struct job *job, struct fail *fail);
/* Opens the sandbox on the image and the layers added so far. */
int stage_sandbox_open(struct stage_sandbox *stage, const struct job *job, struct fail *fail);
/* It is another part's from now on: what is started in it has that part's variables. */
int stage_sandbox_hand_over(struct stage_sandbox *stage, const struct job *job, enum stage_part to, struct fail *fail);
void stage_sandbox_close(struct stage_sandbox *stage);

/* JOB_PACK_MS after it was asked first. */
int64_t stage_closing_by(struct stage_sandbox *stage);

/*
 * Ends the job after a call that returned `code` when it was `who`'s turn (nobody's before there is
 * a sandbox), as blame.h has it; where the sandbox knows better what is at fault, by that.
 */
void stage_end_failed(struct job *job, const struct stage_sandbox *stage, enum blame_who who, int code,
                      const struct fail *fail);

/* Milliseconds for a command that may last limit_s: less when the stage ends sooner, with some
 * left to say how it ended. */
int64_t stage_command_ms(uint64_t limit_s);
/* The end of an output, at most `max` bytes, from where a line begins if that can be. */
const char *stage_output_tail(const struct sandbox_output *output, size_t max);
/* "exited with 3", "was killed by signal 9", "was stopped after 12.0 s"; and the breaches. */
void stage_describe_end(const struct stage_sandbox *stage, const struct sandbox_output *output, char *text,
                        size_t size);

/* " (limits reached: disk, inodes)", or "": for the end of a sentence. */
void stage_describe_breaches(const struct stage_sandbox *stage, char *text, size_t size);
/* What the agent's sandbox used, into its record; `is_late`: the stage's time was over. False when
 * out of memory. */
bool stage_record_usage(const struct stage_sandbox *stage, bool is_late, struct record *record);
/* What it left that decides what runs in an evaluator's sandbox, after it was packed; likewise. */
bool stage_record_touched(const struct stage_sandbox *stage, struct record *record);

#endif
