/*
 * Telling a reader all there is. Groups, inits, ends, failures and leases are five cursors in the order of
 * their numbers, walked side by side: one pass, and memory for one row of each. Runs are
 * asked for one by one where there can be one, so that no kept record's page is read. A million groups may be
 * queued: nothing is looked up for each of them.
 */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdio.h>

#include "broker/task_summary.h"

enum { JOB_NAME_SIZE = 160 };

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

static bool stands_at(struct ledger *ledger, const struct cursor *cursor, int64_t number)
{
    return cursor->state > 0 && ledger_number(ledger, cursor->statement, 0) == number;
}

struct cursors {
    struct cursor inits, ends, failures, leases;
    int64_t stream; /* the number under STREAM_NAME; 0: none */
};

static int out_of_memory(struct fail *fail)
{
    return fail_set(fail, -ENOMEM,
                    "out of memory while reading the ledger, or a row of it makes "
                    "no sense: try it with more memory, then see docs/operations.md, a damaged ledger");
}

static int tell_streams(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_STREAMS;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail))
        if (!reader->stream(reader->context, ledger_slice(ledger, all, 0), ledger_slice(ledger, all, 3),
                            (uint64_t)ledger_number(ledger, all, 1), (uint64_t)ledger_number(ledger, all, 2)))
            return out_of_memory(fail);
    return code;
}

static int tell_early_cancels(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_EARLY_CANCELS;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail))
        if (!reader->early_cancel(reader->context, ledger_slice(ledger, all, 0), ledger_slice(ledger, all, 1),
                                  (uint64_t)ledger_number(ledger, all, 2)))
            return out_of_memory(fail);
    return code;
}

static int tell_policies(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_POLICIES;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail)) {
        struct core_policy row = {ledger_slice(ledger, all, 0), ledger_slice(ledger, all, 1),
                                  ledger_slice(ledger, all, 2)};
        if (reader->policy && !reader->policy(reader->context, &row))
            return out_of_memory(fail);
    }
    return code;
}

static int tell_engines(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_ENGINES;
    int code = ledger_ask(ledger, all, NULL, 0, fail);
    for (; code > 0; code = ledger_next(ledger, all, fail)) {
        struct core_engine row = {.url = ledger_slice(ledger, all, 0),
                                  .runs_max = (uint64_t)ledger_number(ledger, all, 1),
                                  .draining = ledger_number(ledger, all, 2) != 0,
                                  .version = ledger_slice(ledger, all, 3),
                                  .calls = ledger_slice(ledger, all, 4),
                                  .paused_until_ms = (uint64_t)ledger_number(ledger, all, 5),
                                  .version_number = (uint64_t)ledger_number(ledger, all, 6),
                                  .credentials = ledger_slice(ledger, all, 7),
                                  .policy = ledger_slice(ledger, all, 8),
                                  .tokenizer = ledger_slice(ledger, all, 9),
                                  .template = ledger_slice(ledger, all, 10)};
        if (!reader->engine(reader->context, &row))
            return out_of_memory(fail);
    }
    return code;
}

static int tell_room(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    int code = reader->room ? ledger_ask(ledger, LEDGER_COUNT_GROUPS, NULL, 0, fail) : 0;
    if (code > 0 && !reader->room(reader->context, (uint64_t)ledger_number(ledger, LEDGER_COUNT_GROUPS, 0)))
        return out_of_memory(fail);
    return code < 0 ? code : 0;
}

static int tell_forgotten_groups(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
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

/*
 * What scheduling needs of the task of the group under ALL_GROUPS; where its row does not say, or not in a way that is
 * understood, the task does, in `read`.
 */
static int find_summary(struct ledger *ledger, struct core_task *ret, struct task_summary *read, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_GROUPS;
    struct refusal no;
    int code = 1;
    const bool is_said = !ledger_is_null(ledger, all, 8);
    if (is_said && ledger_summary_unpack(ledger_slice(ledger, all, 8), ret))
        return 0;
    if (is_said)
        code = ledger_ask(ledger, LEDGER_GROUP_TASK, VALUES(NUMBER(ledger_number(ledger, all, 0))), fail);
    if (code < 0)
        return code;
    struct slice task = is_said ? ledger_slice(ledger, LEDGER_GROUP_TASK, 0) : ledger_slice(ledger, all, 9);
    if (!task_summary_read(task, read, &no))
        task_summary_default(read);
    ledger_reset(ledger, LEDGER_GROUP_TASK);
    *ret = read->task;
    return 0;
}

static int tell_group(struct ledger *ledger, const struct ledger_reader *reader, bool is_init_done, struct fail *fail)
{
    enum ledger_statement all = LEDGER_ALL_GROUPS;
    struct task_summary read;
    struct core_group_row row = {.group = ledger_slice(ledger, all, 1),
                                 .stream = ledger_slice(ledger, LEDGER_STREAM_NAME, 0),
                                 .samples = (uint64_t)ledger_number(ledger, all, 3),
                                 .task_hash = (uint64_t)ledger_number(ledger, all, 4),
                                 .init_done = is_init_done,
                                 .priority = (uint64_t)ledger_number(ledger, all, 5),
                                 .lease_ms = (uint64_t)ledger_number(ledger, all, 6),
                                 .accepted_ms = (uint64_t)ledger_number(ledger, all, 7)};
    if (is_init_done) {
        row.init_layer = ledger_slice(ledger, LEDGER_ALL_INITS, 1);
        row.init_ms = (uint64_t)ledger_number(ledger, LEDGER_ALL_INITS, 2);
    }
    int code = find_summary(ledger, &row.task, &read, fail);
    return code ? code : reader->group(reader->context, &row) ? 0 : out_of_memory(fail);
}

/* Fills in what a rollout's run left, if it has ended. */
static int read_run(struct ledger *ledger, int64_t number, struct core_rollout_row *row, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_GET_RUN, VALUES(NUMBER(number)), fail);
    if (code <= 0)
        return code;
    row->run_done = outcome_parse(ledger_slice(ledger, LEDGER_GET_RUN, 0), &row->run_outcome);
    row->run_again = slice_is(ledger_slice(ledger, LEDGER_GET_RUN, 0), "again");
    row->run_detail = ledger_slice(ledger, LEDGER_GET_RUN, 1);
    row->run_ms = (uint64_t)ledger_number(ledger, LEDGER_GET_RUN, 2);
    row->engine = ledger_slice(ledger, LEDGER_GET_RUN, 3);
    row->record_bytes = (uint64_t)ledger_number(ledger, LEDGER_GET_RUN, 4);
    return 0;
}

static void read_end(struct ledger *ledger, struct core_rollout_row *row)
{
    row->ended = true;
    row->stream = ledger_slice(ledger, LEDGER_ALL_ENDS, 1);
    row->seq = (uint64_t)ledger_number(ledger, LEDGER_ALL_ENDS, 2);
    row->record_bytes = (uint64_t)ledger_number(ledger, LEDGER_ALL_ENDS, 4);
    row->ended_ms = (uint64_t)ledger_number(ledger, LEDGER_ALL_ENDS, 5);
}

static bool tell_failures(struct ledger *ledger, const struct ledger_reader *reader, struct slice name)
{
    enum ledger_statement all = LEDGER_ALL_FAILURES;
    char job[JOB_NAME_SIZE];
    snprintf(job, sizeof(job), "%.*s:%.*s", SLICE_ARG(ledger_slice(ledger, all, 1)), SLICE_ARG(name));
    struct core_failures failures = {.job = slice_from_str(job),
                                     .attempt = (uint64_t)ledger_number(ledger, all, 2),
                                     .infras = (uint64_t)ledger_number(ledger, all, 3),
                                     .faults = (uint64_t)ledger_number(ledger, all, 4),
                                     .blames = (uint64_t)ledger_number(ledger, all, 5),
                                     .deaths = (uint64_t)ledger_number(ledger, all, 6),
                                     .history = ledger_slice(ledger, all, 7),
                                     .fenced_up_to = (uint64_t)ledger_number(ledger, all, 8),
                                     .missing = (uint64_t)ledger_number(ledger, all, 9)};
    return reader->failures(reader->context, &failures);
}

static bool tell_lease(struct ledger *ledger, const struct ledger_reader *reader, struct slice name)
{
    enum ledger_statement all = LEDGER_ALL_LEASES;
    char job[JOB_NAME_SIZE];
    snprintf(job, sizeof(job), "%.*s:%.*s", SLICE_ARG(ledger_slice(ledger, all, 1)), SLICE_ARG(name));
    struct core_lease lease = {.job = slice_from_str(job),
                               .token = (uint64_t)ledger_number(ledger, all, 2),
                               .worker = ledger_slice(ledger, all, 3),
                               .key = ledger_slice(ledger, all, 4)};
    return reader->lease(reader->context, &lease);
}

/* What went wrong with the job of this key, a rollout's or an init's, and who has it. */
static int tell_job(struct ledger *ledger, const struct ledger_reader *reader, struct cursors *at, int64_t key,
                    struct slice name, struct fail *fail)
{
    int code = advance(ledger, &at->failures, key, fail);
    if (code == 0)
        code = advance(ledger, &at->leases, key, fail);
    if (code)
        return code;
    bool took = !stands_at(ledger, &at->failures, key) || tell_failures(ledger, reader, name);
    if (took && stands_at(ledger, &at->leases, key))
        took = tell_lease(ledger, reader, name);
    return took ? 0 : out_of_memory(fail);
}

/* "<group>/<sample>", as printf would and in a tenth of the time. Empty: no group has so long a name. */
static struct slice name_rollout(struct slice group, unsigned sample, char ret[JOB_NAME_SIZE])
{
    enum { DIGITS_MAX = 4 };
    const size_t len = group.len + 1 + (sample < 10 ? 1 : sample < 100 ? 2 : sample < 1000 ? 3 : DIGITS_MAX);
    if (!group.len || group.len + 1 + DIGITS_MAX > JOB_NAME_SIZE)
        return slice_of(NULL, 0);
    memcpy(ret, group.data, group.len);
    ret[group.len] = '/';
    for (size_t at = len; at > group.len + 1; sample /= 10)
        ret[--at] = (char)('0' + sample % 10);
    return slice_of(ret, len);
}

/* One rollout of the group under ALL_GROUPS, and what there is of its job. */
static int tell_rollout(struct ledger *ledger, const struct ledger_reader *reader, struct cursors *at, int64_t number,
                        struct fail *fail)
{
    struct cursor *ends = &at->ends;
    int code = advance(ledger, ends, number, fail);
    if (code)
        return code;
    bool is_ended = stands_at(ledger, ends, number);
    if (is_ended && !ledger_number(ledger, LEDGER_ALL_ENDS, 3))
        return 0; /* forgotten, or acknowledged and soon to be */
    struct slice group = ledger_slice(ledger, LEDGER_ALL_GROUPS, 1);
    const unsigned sample = (unsigned)(number % ROLLOUTS_PER_GROUP);
    char name[JOB_NAME_SIZE];
    struct core_rollout_row row = {.rollout = name_rollout(group, sample, name), .group = group, .sample = sample};
    if (is_ended)
        read_end(ledger, &row);
    else if (stands_at(ledger, &at->inits, number / ROLLOUTS_PER_GROUP)) /* no run begins before */
        code = read_run(ledger, number, &row, fail);
    if (code)
        return code;
    bool took = reader->rollout(reader->context, &row);
    ledger_reset(ledger, LEDGER_GET_RUN);
    if (!took)
        return out_of_memory(fail);
    return is_ended ? 0 : tell_job(ledger, reader, at, failures_of_rollout(number), row.rollout, fail);
}

/* Leaves the name of its stream, which many groups in a row share, under STREAM_NAME. */
static int find_stream(struct ledger *ledger, struct cursors *at, struct fail *fail)
{
    const int64_t number = ledger_number(ledger, LEDGER_ALL_GROUPS, 2);
    if (number == at->stream)
        return 0;
    int code = ledger_ask(ledger, LEDGER_STREAM_NAME, VALUES(NUMBER(number)), fail);
    if (code == 0)
        code = ledger_damaged(ledger, "a group has a stream that is not there", fail);
    at->stream = number;
    return code < 0 ? code : 0;
}

/* The group under ALL_GROUPS, its rollouts, and what there is of its init. */
static int tell_whole_group(struct ledger *ledger, const struct ledger_reader *reader, struct cursors *at,
                            struct fail *fail)
{
    int64_t samples = ledger_number(ledger, LEDGER_ALL_GROUPS, 3);
    if (samples < 1 || samples > ROLLOUTS_PER_GROUP)
        return ledger_damaged(ledger, "a group has an impossible number of samples", fail);
    int64_t group = ledger_number(ledger, LEDGER_ALL_GROUPS, 0);
    int64_t first = group * ROLLOUTS_PER_GROUP;
    int code = find_stream(ledger, at, fail);
    if (code == 0)
        code = advance(ledger, &at->inits, group, fail);
    if (code == 0)
        code = tell_group(ledger, reader, stands_at(ledger, &at->inits, group), fail);
    for (int64_t number = first; code == 0 && number < first + samples; number++)
        code = tell_rollout(ledger, reader, at, number, fail);
    struct slice name = ledger_slice(ledger, LEDGER_ALL_GROUPS, 1);
    return code ? code : tell_job(ledger, reader, at, failures_of_init(group), name, fail);
}

static int tell_groups(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    struct cursors at = {
        {LEDGER_ALL_INITS, 0}, {LEDGER_ALL_ENDS, 0}, {LEDGER_ALL_FAILURES, 0}, {LEDGER_ALL_LEASES, 0}, 0};
    struct cursor *const cursors[] = {&at.inits, &at.ends, &at.failures, &at.leases};
    for (size_t i = 0; i < sizeof(cursors) / sizeof(*cursors); i++) {
        cursors[i]->state = ledger_ask(ledger, cursors[i]->statement, NULL, 0, fail);
        if (cursors[i]->state < 0)
            return cursors[i]->state;
    }
    int code = ledger_ask(ledger, LEDGER_ALL_GROUPS, NULL, 0, fail);
    while (code > 0) {
        code = tell_whole_group(ledger, reader, &at, fail);
        if (code == 0)
            code = ledger_next(ledger, LEDGER_ALL_GROUPS, fail);
    }
    return code;
}

/* Before the snapshot: restoring only reads. */
static int drop_old_early_cancels(struct ledger *ledger, uint64_t since_ms, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_OLD_EARLY_CANCELS, fail, NUMBER(since_ms));
    return code ? code : ledger_end(ledger, fail);
}

int ledger_restore(struct ledger *ledger, const struct ledger_reader *reader, struct fail *fail)
{
    int code = drop_old_early_cancels(ledger, reader->early_cancels_since_ms, fail);
    if (code == 0)
        code = ledger_read_begin(ledger, fail);
    if (code == 0)
        code = tell_streams(ledger, reader, fail);
    if (code == 0)
        code = tell_policies(ledger, reader, fail);
    if (code == 0)
        code = tell_engines(ledger, reader, fail);
    if (code == 0)
        code = tell_room(ledger, reader, fail);
    if (code == 0)
        code = tell_forgotten_groups(ledger, reader, fail);
    if (code == 0)
        code = tell_groups(ledger, reader, fail);
    if (code == 0)
        code = ledger_tell_samplers(ledger, reader, fail);
    if (code == 0)
        code = tell_early_cancels(ledger, reader, fail);
    if (code == 0 && reader->end && !reader->end(reader->context))
        code = out_of_memory(fail);
    for (int all = LEDGER_ALL_STREAMS; all <= LEDGER_ALL_EARLY_CANCELS; all++)
        ledger_reset(ledger, (enum ledger_statement)all);
    return code ? code : ledger_read_end(ledger, fail);
}
