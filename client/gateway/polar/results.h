/* results.h - a task's results, fetched from the broker one by one: the gateway holds none of them. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_RESULTS_H
#define SLUICE_CLIENT_GATEWAY_POLAR_RESULTS_H

#include "client/gateway/polar/tasks.h"

/* All zero before its first use. */
struct results {
    struct polar_of *of;
    char base[BOOK_BASE_SIZE];
    unsigned number, next, count; /* of the task; the next session; of those that are there */
    bool was_over;                /* the task, when it began: one that ends meanwhile is told from its beginning */
    struct buffer text;
    struct caller_ask ask;
    /* text holds them, with commas between; false: the task is gone, or the broker silent. */
    void (*ended)(void *arg, bool is_whole);
    void *arg;
};

/* `ended` is told, at once or later. */
void results_begin(struct results *results, const struct polar_task *task, void (*ended)(void *, bool), void *arg);
/* The task as it stands, or NULL: it is gone. */
struct polar_task *results_task(const struct results *results);
void results_finish(struct results *results);

/* {task_id, status, total_sessions, completed_sessions, results, result_paths}. id: where it is not known otherwise. */
void results_append_status(const struct results *results, const struct polar_task *task, const char *id,
                           struct buffer *out);

#endif
