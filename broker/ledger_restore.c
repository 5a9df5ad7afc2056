/*
 * Telling a reader all there is. Groups, runs and ends are three cursors in the order of
 * rollout numbers, walked side by side: one pass, and memory for one row of each.
 */
#include "broker/ledger_inner.h"

#include <errno.h>
#include <stdio.h>

#include "broker/facts.h"

struct cursor {
    enum ledger_statement statement;
    int state; /* 1: a row is there */
};

static int advance(struct ledger *ledger, struct cursor *cursor, int64_t until, struct fail *fail)
{
    while (cursor->state > 0 && ledger_number(ledger, cursor->statement, 0) < until)
        cursor->state = ledger_next(ledger, cursor->statement, fail);
    return cursor->state < 0 ? cursor->state : 0;
}

static bool stands_at(struct ledger *ledger, const struct cursor *cursor, int64_t rollout)
{
    return cursor->state > 0 && ledger_number(ledger, cursor->statement, 0) == rollout;
}

static int out_of_memory(struct fail *fail)
{
    return fail_set(fail, -ENOMEM, "out of memory while reading the ledger");
}

static int tell_streams(struct ledger *ledger, const struct ledger_reader *reader,
                        struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_STREAMS;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail))
        if (!reader->stream(reader->context, ledger_slice(ledger, all, 0),
                            (uint64_t)ledger_number(ledger, all, 1),
                            (uint64_t)ledger_number(ledger, all, 2)))
            return out_of_memory(fail);
    return code;
}

static int tell_engines(struct ledger *ledger, const struct ledger_reader *reader,
                        struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_ALL_ENGINES, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, LEDGER_ALL_ENGINES, fail))
        if (!reader->engine(reader->context, ledger_slice(ledger, LEDGER_ALL_ENGINES, 0)))
            return out_of_memory(fail);
    return code;
}

static int tell_forgotten_groups(struct ledger *ledger, const struct ledger_reader *reader,
                                 struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_FORGOTTEN_GROUPS;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail)) {
        struct core_group_row row = {.group = ledger_slice(ledger, all, 0),
                                     .stream = ledger_slice(ledger, all, 1),
                                     .samples = (uint64_t)ledger_number(ledger, all, 2),
                                     .task_hash = (uint64_t)ledger_number(ledger, all, 3)};
        if (!reader->group(reader->context, &row))
            return out_of_memory(fail);
    }
    return code;
}

static bool tell_group(struct ledger *ledger, const struct ledger_reader *reader)
{
    enum ledger_statement all = LEDGER_ALL_GROUPS;
    struct facts facts;
    if (!facts_read(ledger_slice(ledger, all, 5), &facts, NULL))
        facts_default(&facts);
    struct core_group_row row = {.group = ledger_slice(ledger, all, 1),
                                 .stream = ledger_slice(ledger, all, 2),
                                 .samples = (uint64_t)ledger_number(ledger, all, 3),
                                 .task_hash = (uint64_t)ledger_number(ledger, all, 4),
                                 .task = facts.task,
                                 .init_done = ledger_number(ledger, all, 6) != 0,
                                 .init_layer = ledger_slice(ledger, all, 7),
                                 .init_ms = (uint64_t)ledger_number(ledger, all, 8)};
    return reader->group(reader->context, &row);
}

/* One rollout of the group under ALL_GROUPS; the other cursors stand at it or beyond it. */
static bool tell_rollout(struct ledger *ledger, const struct ledger_reader *reader,
                         const struct cursor *runs, const struct cursor *ends, int64_t number)
{
    bool is_ended = stands_at(ledger, ends, number);
    if (is_ended && !ledger_number(ledger, LEDGER_ALL_ENDS, 3))
        return true; /* forgotten, or acknowledged and soon to be */
    struct slice group = ledger_slice(ledger, LEDGER_ALL_GROUPS, 1);
    char name[160];
    snprintf(name, sizeof(name), "%.*s/%d", SLICE_ARG(group), (int)(number % ROLLOUTS_PER_GROUP));
    struct core_rollout_row row = {.rollout = slice_from_str(name),
                                   .group = group,
                                   .sample = (uint64_t)(number % ROLLOUTS_PER_GROUP),
                                   .ended = is_ended};
    if (is_ended) {
        row.stream = ledger_slice(ledger, LEDGER_ALL_ENDS, 1);
        row.seq = (uint64_t)ledger_number(ledger, LEDGER_ALL_ENDS, 2);
    } else if (stands_at(ledger, runs, number)) {
        row.run_done = outcome_parse(ledger_slice(ledger, LEDGER_ALL_RUNS, 1), &row.run_outcome);
        row.run_detail = ledger_slice(ledger, LEDGER_ALL_RUNS, 2);
        row.run_ms = (uint64_t)ledger_number(ledger, LEDGER_ALL_RUNS, 3);
        row.engine = ledger_slice(ledger, LEDGER_ALL_RUNS, 4);
    }
    return reader->rollout(reader->context, &row);
}

static int tell_groups(struct ledger *ledger, const struct ledger_reader *reader,
                       struct fail *fail)
{
    struct cursor runs = {LEDGER_ALL_RUNS, 0}, ends = {LEDGER_ALL_ENDS, 0};
    runs.state = ledger_ask(ledger, LEDGER_ALL_RUNS, NULL, 0, fail);
    ends.state = ledger_ask(ledger, LEDGER_ALL_ENDS, NULL, 0, fail);
    int code = ledger_ask(ledger, LEDGER_ALL_GROUPS, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, LEDGER_ALL_GROUPS, fail)) {
        if (!tell_group(ledger, reader))
            return out_of_memory(fail);
        int64_t first = ledger_number(ledger, LEDGER_ALL_GROUPS, 0) * ROLLOUTS_PER_GROUP;
        int64_t samples = ledger_number(ledger, LEDGER_ALL_GROUPS, 3);
        for (int64_t number = first; number < first + samples; number++) {
            code = advance(ledger, &runs, number, fail);
            if (code == 0)
                code = advance(ledger, &ends, number, fail);
            if (code)
                return code;
            if (!tell_rollout(ledger, reader, &runs, &ends, number))
                return out_of_memory(fail);
        }
    }
    return code < 0 ? code : runs.state < 0 ? runs.state : ends.state < 0 ? ends.state : 0;
}

int ledger_restore(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    int code = ledger_read_begin(ledger, fail);
    if (code == 0)
        code = tell_streams(ledger, reader, fail);
    if (code == 0)
        code = tell_engines(ledger, reader, fail);
    if (code == 0)
        code = tell_forgotten_groups(ledger, reader, fail);
    if (code == 0)
        code = tell_groups(ledger, reader, fail);
    for (int all = LEDGER_ALL_STREAMS; all <= LEDGER_ALL_ENDS; all++)
        ledger_reset(ledger, (enum ledger_statement)all);
    return code ? code : ledger_read_end(ledger, fail);
}
