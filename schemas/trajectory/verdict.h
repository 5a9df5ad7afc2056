/*
 * verdict.h - an evaluator's result: a reward or none, why in words, and what it is made of: named parts with
 * weights, metrics, and the results of single tests. All but reward and words cross the wire as the `verdict` field
 * of job.result and trajectory, a MessagePack map {parts, metrics, tests, sandbox, patch} (trajectory.def,
 * docs/trajectory.md).
 *
 *     AUTO_VERDICT verdict = {0};
 *     verdict_add_part(&verdict, "correct", 1, 0.9, &no) && verdict_add_part(&verdict, "format", 0, 0.1, &no) &&
 *         verdict_add_metric(&verdict, "edits", 3, &no) &&
 *         verdict_add_test(&verdict, "test_sum", TEST_PASSED, NULL, NULL, &no) &&
 *         verdict_sum(&verdict, &no);      (the reward is then 0.9, the sum of weight times value)
 *     verdict_say(&verdict, "%s", "3 edits");
 *
 * All zero bytes are a verdict without a reward, which is not a reward of 0: the evaluator is broken, or the task has
 * none. Numbers are finite. Names of parts and of metrics are given once. A refusal leaves the verdict as it was.
 */
#ifndef SLUICE_SCHEMAS_TRAJECTORY_VERDICT_H
#define SLUICE_SCHEMAS_TRAJECTORY_VERDICT_H

#include <stdarg.h>

#include "schemas/trajectory/trajectory.h"

enum {
#define VERDICT_MAX(name, number) VERDICT_##name##_MAX = number,
#include "schemas/trajectory/verdict_max.def"
#undef VERDICT_MAX
};

enum { VERDICT_WHY_BYTES = 2048 };

enum test_status { TEST_PASSED, TEST_FAILED, TEST_SKIPPED, TEST_ERROR, TEST_STATUS_COUNT };

const char *test_status_wire(enum test_status status); /* "passed", "failed", "skipped", "error" */
bool test_status_parse(struct slice wire, enum test_status *ret);

struct verdict_part {
    char name[64];
    double value, weight;
};

struct verdict_test {
    char *name;
    char status[16]; /* a word of test_status_wire */
    char *message;   /* NULL: none */
    struct record_seconds seconds;
};

struct verdict_tests {
    uint64_t passed, failed, skipped, error; /* of all, listed or not */
    struct verdict_test *list;               /* the first of them */
    size_t list_count, list_capacity;
    size_t text_bytes; /* of those */
};

struct verdict {
    bool has_reward;
    double reward;
    char *why; /* UTF-8; NULL: nothing was said (verdict_why) */
    struct verdict_part *parts;
    size_t part_count, part_capacity;
    struct record_metric *metrics;
    size_t metric_count, metric_capacity;
    struct verdict_tests *tests; /* NULL: it ran none */
    char *sandbox;               /* "agent": it ran in the agent's own sandbox; NULL: in none, or in one of its own */
    char *patch;                 /* what the agent changed in a repository, as git diff has it; NULL: not known */
};

#define AUTO_VERDICT __attribute__((cleanup(verdict_finish))) struct verdict

/* Frees what is in it; all zero again. */
void verdict_finish(struct verdict *verdict);

/*
 * What an agent or a tool noted while it worked, which the record keeps: a name again replaces its number. Refused as
 * the metrics of a verdict are, and as many may be there.
 */
bool record_note_metric(struct record *record, const char *name, double value, struct refusal *no);

/* These refuse a name that is empty, too long, given twice, not UTF-8 or has a control character; and what is not
 * finite. */
bool verdict_add_part(struct verdict *verdict, const char *name, double value, double weight, struct refusal *no);
bool verdict_add_metric(struct verdict *verdict, const char *name, double value, struct refusal *no);
/*
 * `message` and `seconds` may be NULL. Texts are repaired where they are not UTF-8, and cut; a name may be given again,
 * and must not be empty. Beyond what a verdict lists the test is counted only.
 */
bool verdict_add_test(struct verdict *verdict, const char *name, enum test_status status, const char *message,
                      const double *seconds, struct refusal *no);

/* The reward; refused where it is not finite. */
bool verdict_set_reward(struct verdict *verdict, double reward, struct refusal *no);
/* The reward is the sum of weight times value of the parts; refused where there is none. */
bool verdict_sum(struct verdict *verdict, struct refusal *no);
/* Passed among passed, failed and error; false: there is none of these. */
bool verdict_pass_fraction(const struct verdict *verdict, double *ret);
/* That it ran in the agent's own sandbox, whose processes may have had a hand in it. False: out of memory. */
bool verdict_set_agents_sandbox(struct verdict *verdict);
/*
 * What the agent changed. One that is too large, or no UTF-8 text, is left out: cut or repaired it would not apply.
 * False: out of memory.
 */
bool verdict_set_patch(struct verdict *verdict, struct slice patch);
/* Sets `why`, which is repaired and cut to VERDICT_WHY_BYTES, its end included; nothing is said when out of memory. */
void verdict_say(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
void verdict_vsay(struct verdict *verdict, const char *format, va_list args);
const char *verdict_why(const struct verdict *verdict); /* "": nothing was said */

/* Whether there is more than a reward and words: else there is nothing to send. */
bool verdict_has_details(const struct verdict *verdict);
/* Parts, metrics and tests as bytes and back; both check. decode: the caller calls verdict_finish, also after a
 * refusal. */
bool verdict_encode(const struct verdict *verdict, struct buffer *out, struct refusal *no);
bool verdict_decode(struct slice bytes, struct verdict *ret, struct refusal *no);

#endif
