/*
 * asking.h - a call of Polar's API: it goes on once all is known that there was at the gateway's start, and has the
 * room that its handlers need.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_ASKING_H
#define SLUICE_CLIENT_GATEWAY_POLAR_ASKING_H

#include "client/gateway/polar/book.h"
#include "client/gateway/polar/results.h"

struct asking {
    struct http_call *call;
    struct polar_of *of;
    struct loop_timer *again;
    int64_t ends_ms;
    bool (*go)(struct asking *asking);              /* false: not yet */
    char id[TASK_ID_MAX + 1], base[BOOK_BASE_SIZE]; /* of the task that it is about */
    unsigned number;
    struct task_request request; /* of a submit */
    struct results results;
};

/*
 * `go` is called, at once or later, until it is true; 503 where that takes too long. With id the path names a task,
 * whose id and base are there. NULL: it is refused.
 */
struct asking *asking_begin(struct http_call *call, bool with_id, bool (*go)(struct asking *asking));
/* Another step, for which it waits as it did for the first; after the longest wait it is called as it is. */
void asking_go_on(struct asking *asking, int64_t wait_ms, bool (*go)(struct asking *asking));
/* 422 in FastAPI's form, with the field's place. */
void asking_refuse_field(struct http_call *call, const char *field, const char *words);
/* The task that the path names; NULL: there is none, which is answered. */
struct polar_task *asking_task(struct asking *asking);

#endif
