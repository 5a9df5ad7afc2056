/* grade_jobs.h - what is graded: of each task that was chosen, or of each row, what an agent left. */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_JOBS_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_JOBS_H

#include "client/cli/grade/grade_left.h"
#include "client/cli/submit/tasks_file.h"

enum { GRADE_ROW_BYTES_MAX = 16 << 20, GRADE_NEEDS_MAX = 16 };

struct grade_job {
    char *json;     /* the task as it is submitted; NULL: there is none, and `why` */
    char *task;     /* its id; NULL: a row did not say which */
    size_t row;     /* from 1; 0: not of a row */
    char why[512];  /* without json: as one line */
    char group[80]; /* set where it is submitted */
    char *printed;  /* its verdict, once it is there */
    bool has_ended;
    enum grade_status status;
};

/* Zero it first. It owns all but `options`. */
struct grade_jobs {
    const struct grade_options *options;
    struct tasks_file tasks;
    struct grade_job *each;
    size_t count, capacity;
    struct grade_dirs dirs;
    char *policy;                 /* whose engines judge; NULL: nothing is judged */
    char *needs[GRADE_NEEDS_MAX]; /* evaluators of handlers, "evaluator:NAME" */
    size_t need_count;
};

/* NULL: out of memory. */
struct grade_job *grade_jobs_add(struct grade_jobs *jobs);
/* The first task of that id, or NULL. */
const struct task_line *grade_jobs_find(const struct grade_jobs *jobs, const char *id);
/* Sets the job's json and task. Negative: what is wrong with it, or what its evaluator needs and was not given. */
int grade_jobs_make(struct grade_jobs *jobs, struct grade_job *job, const struct task_line *line,
                    const struct grade_left *left, struct fail *fail);
void grade_jobs_finish(struct grade_jobs *jobs);

#endif
