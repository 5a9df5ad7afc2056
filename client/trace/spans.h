/*
 * spans.h - where the time of one trajectory went, as spans inside spans:
 *
 *     rollout > queue, init, run, eval;  run > turn > engine call, tool call
 *
 * Only what the record holds is told (docs/trajectory.md): durations, and when the rollout ended. Nothing says when a
 * stage, a turn or a call began, so all stand in their order, one behind the other: the stages end where the rollout
 * ended, and the turns begin with the run. What of a run is in no turn (its sandbox, its packing) is what is left
 * behind them. Where the turns together took longer than the run, they were conversations side by side: then each
 * trace begins with the run, in a lane of its own. Each engine call is one span, as long as the record says. A tool
 * call is one, too, but for those of one reply, whose time the record holds together: these are one span, of
 * several `calls`. A call whose time is not recorded (what ended the rollout, and a harness's) is one of no length.
 *
 * Times are microseconds; `start_us` since 1970 by the broker's clock. The list borrows from the trajectory, which must
 * outlive it.
 */
#ifndef SLUICE_CLIENT_TRACE_SPANS_H
#define SLUICE_CLIENT_TRACE_SPANS_H

#include "client/sluice.h"

enum span_kind { SPAN_ROLLOUT, SPAN_QUEUE, SPAN_INIT, SPAN_RUN, SPAN_EVAL, SPAN_TURN, SPAN_ENGINE, SPAN_TOOL };

enum { SPAN_NO_PARENT = -1, SPAN_NAME_SIZE = 64, SPAN_LIST_ID = 16 };

struct span {
    enum span_kind kind;
    int parent;                /* its place in the list */
    char name[SPAN_NAME_SIZE]; /* "run", "turn 3", "chat", a tool's */
    int64_t start_us, duration_us;
    unsigned lane;                  /* 0: its rollout's; else of a trace that went on beside others */
    unsigned trace, turn;           /* of turns and calls: the trace, from 0; the turn of the rollout, from 1 */
    const struct sluice_turn *call; /* of an engine call */
    unsigned calls;                 /* of tools: how many calls it is */
    int exit_status;                /* of one tool call */
    bool is_timed;                  /* false: the record does not say how long it took */
};

struct span_list {
    const struct sluice_trajectory *of;
    struct span *items; /* parents before what is inside them; the first is the rollout */
    size_t count, capacity;
    bool has_lanes;           /* conversations stand side by side */
    uint8_t id[SPAN_LIST_ID]; /* of the rollout's name, the same wherever it is made */
    uint64_t group_id;        /* of its group's */
};

/* False when out of memory: then it is empty. The caller finishes it. */
bool span_list_make(struct span_list *list, const struct sluice_trajectory *trajectory);
void span_list_finish(struct span_list *list);
/* "rollout", "engine" ... */
const char *span_kind_word(enum span_kind kind);

#define AUTO_SPANS __attribute__((cleanup(span_list_finish))) struct span_list

#endif
