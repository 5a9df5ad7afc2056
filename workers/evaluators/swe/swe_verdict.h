/*
 * swe_verdict.h - from what a run of the tests printed to a verdict: 1 where it resolves the task, else 0, and no
 * reward where the tests did not begin. Pure, and for a thread.
 *
 * Nothing that a program prints resolves a task by itself: the marks around the tests must each be there once, the exit
 * status must not say another thing than the log, a runner that counts must have counted, and a witness
 * (swe_witness.py) must have seen to its end what the log says.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_SWE_VERDICT_H
#define SLUICE_WORKERS_EVALUATORS_SWE_SWE_VERDICT_H

#include "schemas/task/task.h"
#include "schemas/trajectory/verdict.h"
#include "workers/evaluators/swe/eval_script.h"

struct swe_run {
    struct slice log;       /* what the script printed; its middle may be left out */
    bool is_cut, timed_out; /* it may be */
    int status;             /* of the script */
    uint64_t seed;          /* of tables of names, which a program prints */
    char nonce[NONCE_SIZE]; /* of the marks */
    bool has_witness;       /* it was asked for, and the two are of it: */
    bool has_begun;         /* the witness was loaded */
    struct slice witness;   /* what it left; empty: it has not come to its end */
    char witness_nonce[NONCE_SIZE];
};

/* Metrics and tests are added to the verdict, and a reward is set unless the evaluator is broken. */
void swe_judge(const struct task_swe *swe, const struct swe_run *run, struct verdict *verdict);

/* Whether the witness is asked for. */
bool swe_wants_witness(const struct task_swe *swe);

#endif
