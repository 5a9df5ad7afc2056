/*
 * prompt.h - what a judge is asked, as messages. Pure.
 *
 * What is judged was written by a model that would like a high score. So it stands between marks of random digits,
 * drawn anew for each reply, and the verdict is asked for behind a label of others (reply.h): neither can be known to
 * whoever wrote the text, and what it says of itself, of the rubric or of a verdict is text like any other. A text that
 * happens to hold a mark has the marks drawn again (judge_marks_fit). Special tokens in it are not this file's: the
 * prompt is rendered as text throughout (engine_render).
 */
#ifndef SLUICE_WORKERS_EVALUATORS_JUDGE_PROMPT_H
#define SLUICE_WORKERS_EVALUATORS_JUDGE_PROMPT_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

enum { JUDGE_MESSAGES = 2 /* the system's and the user's */ };

struct judge_marks {
    char quote[17];  /* around what is judged: 16 hexadecimal digits */
    char verdict[9]; /* of the label: 8 of them */
};

/* The criteria asked for: the task's, or, where it has a reference, the one whether both texts say the same. */
struct judge_criteria {
    const struct task_criterion *list;
    size_t count;
};
struct judge_criteria judge_criteria_of(const struct task_judge *judge);

/* As `bits` has them: 64 for the quote, 32 for the label. */
void judge_marks_make(struct judge_marks *ret, uint64_t quote_bits, uint32_t verdict_bits);
/* Whether none of them stands in the text. */
bool judge_marks_fit(const struct judge_marks *marks, struct slice text);

/* Appends the text, or as much of its front and its end as `max` bytes hold, with a line that says so between them. */
void judge_cut(struct slice text, size_t max, struct buffer *out);

/*
 * The messages; the caller frees them with judge_prompt_finish, also after false, which is out of memory. `judged` is
 * UTF-8 without NUL. is_swapped: the reference stands where what is judged would, and the other way round.
 */
bool judge_prompt_make(const struct task *task, struct slice judged, bool is_swapped, const struct judge_marks *marks,
                       struct task_message ret[JUDGE_MESSAGES]);
void judge_prompt_finish(struct task_message messages[JUDGE_MESSAGES]);

#endif
