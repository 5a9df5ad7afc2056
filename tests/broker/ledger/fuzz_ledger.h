/*
 * fuzz_ledger.h - a ledger that only remembers, and objects: what the core persists must follow
 * from what it persisted before. From it alone the core is restored.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_FUZZ_LEDGER_H
#define SLUICE_TESTS_BROKER_LEDGER_FUZZ_LEDGER_H

#include "broker/core/core.h"
#include "tests/fuzz.h" /* before what uses its must() */

#include "tests/broker/ledger/row_samplers.h"

enum { ROWS_MAX = 64, SAMPLES = 4, STREAMS = 4, ENGINES = 3, TASKS = 6, EARLY_CANCELS_MAX = 256, HISTORY_MAX = 16384 };

struct row_failures {
    bool is_set;
    char job[160];
    uint64_t attempt, infras, faults, blames, deaths, missing, fenced_up_to;
    struct slice history; /* ours */
};

struct row_lease {
    char job[160], worker[140], key[80];
    uint64_t token;
};

struct row_rollout {
    bool run_done, ended, is_scored; /* is_scored: an evaluator ended ok with a reward */
    enum outcome run_outcome;
    uint64_t seq, record_bytes, ended_ms;
    char engine[32];
    bool run_again;
    struct row_failures failures;
    struct row_lease lease;
};

struct row_group {
    char id[100], owner[16];
    unsigned stream, task;
    uint64_t samples, task_hash, priority, lease_ms, accepted_ms;
    bool init_done;
    struct row_failures failures;
    struct row_lease lease;
    struct row_rollout rollouts[SAMPLES];
};

struct row_stream {
    bool is_known;
    char owner[16];
    uint64_t first, head; /* of what is kept */
};

struct row_early_cancel {
    char name[128], owner[16];
    uint64_t wall_ms;
};

struct ledger_rows {
    uint64_t epoch;
    struct row_group groups[ROWS_MAX];
    size_t group_count, early_cancel_count;
    struct row_stream streams[STREAMS];
    struct row_sampler samplers[STREAMS];
    struct row_engine {
        bool is_known, draining;
        uint64_t runs_max, paused_until_ms, version_number;
        char version[32], calls[20];
    } engines[ENGINES];
    struct row_early_cancel early_cancels[EARLY_CANCELS_MAX];
    const struct core_task *tasks; /* TASKS of them; a submit's text is the index, a digit */
    const char *const *stream_names, *const *engine_urls;
};

/* ---- finding --------------------------------------------------------------------------- */

static inline unsigned index_of(const char *const *names, unsigned count, struct slice name)
{
    for (unsigned i = 0; i < count; i++)
        if (slice_is(name, names[i]))
            return i;
    must(!"a name that nobody said");
    return 0;
}

static inline struct row_group *rows_group(struct ledger_rows *rows, struct slice id)
{
    for (size_t i = 0; i < rows->group_count; i++)
        if (slice_is(id, rows->groups[i].id))
            return &rows->groups[i];
    return NULL;
}

/* "<group>/<one digit>" */
static inline struct row_rollout *rows_rollout(struct ledger_rows *rows, struct slice name,
                                               struct row_group **ret_group)
{
    must(name.len > 2 && name.data[name.len - 2] == '/');
    struct row_group *group = rows_group(rows, slice_of(name.data, name.len - 2));
    unsigned sample = name.data[name.len - 1] - '0';
    must(group && sample < group->samples);
    if (ret_group)
        *ret_group = group;
    return &group->rollouts[sample];
}

/* ---- what is persisted ----------------------------------------------------------------- */

static inline void own_stream(struct ledger_rows *rows, struct slice name, struct slice owner)
{
    struct row_stream *stream = &rows->streams[index_of(rows->stream_names, STREAMS, name)];
    if (!stream->is_known)
        put_text(stream->owner, sizeof(stream->owner), owner);
    stream->is_known = true;
}

static inline void persist_group(struct ledger_rows *rows, const struct effect *effect)
{
    must(!rows_group(rows, effect->group) && rows->group_count < ROWS_MAX);
    must(effect->samples >= 1 && effect->samples <= SAMPLES && effect->task.len >= 2);
    struct row_group *row = &rows->groups[rows->group_count++];
    row->stream = index_of(rows->stream_names, STREAMS, effect->stream);
    row->task = effect->task.data[1] - '0';
    row->samples = effect->samples;
    row->task_hash = row->stream * 1000 + row->samples * 100 + row->task;
    row->priority = effect->priority;
    row->lease_ms = effect->lease_ms;
    row->accepted_ms = effect->accepted_ms;
    put_text(row->id, sizeof(row->id), effect->group);
    put_text(row->owner, sizeof(row->owner), effect->owner);
    own_stream(rows, effect->stream, effect->owner);
}

static inline void persist_init(struct ledger_rows *rows, const struct effect *effect)
{
    struct row_group *row = rows_group(rows, effect->group);
    must(row && !row->init_done);
    row->init_done = true;
}

static inline void persist_run(struct ledger_rows *rows, const struct effect *effect)
{
    struct row_group *group;
    struct row_rollout *row = rows_rollout(rows, effect->rollout, &group);
    must(group->init_done && !row->run_done && !row->ended);
    must(effect->outcome == OUTCOME_OK || effect->outcome == OUTCOME_AGENT);
    row->run_done = true;
    row->run_again = row->is_scored = false;
    row->run_outcome = effect->outcome;
    row->record_bytes = effect->record.len;
    put_text(row->engine, sizeof(row->engine), effect->engine);
}

static inline void begin_again(struct row_failures *failures, struct row_lease *lease)
{
    free((void *)failures->history.data);
    *failures = (struct row_failures){0};
    *lease = (struct row_lease){0};
}

/* A sampler has rollouts begun again that no run of theirs has ended well, and inits. */
static inline void persist_again(struct ledger_rows *rows, const struct effect *effect)
{
    struct row_group *group = rows_group(rows, effect->group);
    must(group);
    const bool is_sampled = rows->samplers[group->stream].is_there;
    if (!effect->rollout.len) {
        must(is_sampled && !group->init_done);
        begin_again(&group->failures, &group->lease);
        return;
    }
    struct row_rollout *row = rows_rollout(rows, effect->rollout, NULL);
    must((row->run_done || is_sampled) && !row->ended);
    row->run_again |= row->run_done;
    row->run_done = row->is_scored = false;
    row->record_bytes = 0;
    row->engine[0] = 0;
    begin_again(&row->failures, &row->lease);
}

static inline void persist_end(struct ledger_rows *rows, const struct effect *effect)
{
    const struct core_end *end = &effect->end;
    struct row_group *group;
    struct row_rollout *row = rows_rollout(rows, end->rollout, &group);
    struct row_stream *stream = &rows->streams[group->stream];
    must(!row->ended && slice_is(end->group, group->id) && &group->rollouts[end->sample] == row);
    must(slice_is(end->stream, rows->stream_names[group->stream]) && end->seq == stream->head + 1);
    must(slice_equal(end->task, rows->tasks[group->task].id) && end->outcome < OUTCOME_COUNT);
    must(!end->trainable || end->outcome == OUTCOME_OK || end->outcome == OUTCOME_AGENT);
    must(!end->has_reward || (row->run_done && row->is_scored && outcome_is_trainable(end->outcome)));
    must(end->outcome != OUTCOME_OK || row->run_done);
    row->ended = true;
    row->seq = stream->head = end->seq;
    row->ended_ms = end->clock_ms;
    row->record_bytes = effect->record.len ? effect->record.len : row->record_bytes;
}

static inline void persist_ack(struct ledger_rows *rows, const struct effect *effect)
{
    struct row_stream *row = &rows->streams[index_of(rows->stream_names, STREAMS, effect->stream)];
    must(effect->seq >= row->first && effect->seq <= row->head);
    row->first = effect->seq + 1;
}

static inline void persist_failures(struct ledger_rows *rows, const struct effect *effect)
{
    const struct core_failures *failures = &effect->failures;
    const uint8_t *colon = memchr(failures->job.data, ':', failures->job.len);
    enum stage stage;
    must(colon && stage_parse(slice_of(failures->job.data, (size_t)(colon - failures->job.data)), &stage));
    struct slice rest = slice_of(colon + 1, failures->job.len - (size_t)(colon + 1 - failures->job.data));
    struct row_group *group = stage == STAGE_INIT ? rows_group(rows, rest) : NULL;
    struct row_failures *row = group                 ? &group->failures
                               : stage == STAGE_INIT ? NULL
                                                     : &rows_rollout(rows, rest, NULL)->failures;
    must(row && failures->history.len <= HISTORY_MAX);
    free((void *)row->history.data);
    *row = (struct row_failures){.is_set = true,
                                 .attempt = failures->attempt,
                                 .infras = failures->infras,
                                 .faults = failures->faults,
                                 .blames = failures->blames,
                                 .deaths = failures->deaths,
                                 .missing = failures->missing,
                                 .fenced_up_to = failures->fenced_up_to};
    put_text(row->job, sizeof(row->job), failures->job);
    uint8_t *copy = malloc(failures->history.len + 1);
    must(copy);
    if (failures->history.len)
        memcpy(copy, failures->history.data, failures->history.len);
    row->history = slice_of(copy, failures->history.len);
}

static inline void persist_lease(struct ledger_rows *rows, const struct effect *effect)
{
    const struct core_lease *lease = &effect->lease;
    struct row_group *group = rows_group(rows, effect->group);
    must(group && effect->sample < group->samples && lease->token && lease->worker.len);
    struct row_lease *row = effect->stage == STAGE_INIT ? &group->lease : &group->rollouts[effect->sample].lease;
    put_text(row->job, sizeof(row->job), lease->job);
    put_text(row->worker, sizeof(row->worker), lease->worker);
    put_text(row->key, sizeof(row->key), lease->key);
    row->token = lease->token;
}

static inline void persist_early_cancel(struct ledger_rows *rows, const struct effect *effect)
{
    size_t at = 0;
    while (at < rows->early_cancel_count && !(slice_is(effect->early_cancel.name, rows->early_cancels[at].name) &&
                                              slice_is(effect->early_cancel.owner, rows->early_cancels[at].owner)))
        at++;
    if (!effect->present) {
        must(at < rows->early_cancel_count);
        rows->early_cancels[at] = rows->early_cancels[--rows->early_cancel_count];
        return;
    }
    must(at < EARLY_CANCELS_MAX);
    rows->early_cancel_count += at == rows->early_cancel_count;
    put_text(rows->early_cancels[at].name, sizeof(rows->early_cancels[at].name), effect->early_cancel.name);
    put_text(rows->early_cancels[at].owner, sizeof(rows->early_cancels[at].owner), effect->early_cancel.owner);
    rows->early_cancels[at].wall_ms = effect->early_cancel.clock_ms;
}

static inline void persist_engine(struct row_engine *row, const struct effect *effect)
{
    *row = (struct row_engine){.is_known = effect->present,
                               .draining = effect->row.draining,
                               .runs_max = effect->row.runs_max,
                               .paused_until_ms = effect->row.paused_until_ms,
                               .version_number = effect->row.version_number};
    put_text(row->version, sizeof(row->version), effect->row.version);
    put_text(row->calls, sizeof(row->calls), effect->row.calls);
}

static inline void rows_persist(struct ledger_rows *rows, const struct effect *effect)
{
    switch (effect->kind) {
    case PERSIST_GROUP: persist_group(rows, effect); break;
    case PERSIST_INIT: persist_init(rows, effect); break;
    case PERSIST_RUN: persist_run(rows, effect); break;
    case PERSIST_END: persist_end(rows, effect); break;
    case PERSIST_ACK: persist_ack(rows, effect); break;
    case PERSIST_ENGINE:
        must(slice_equal(effect->engine, effect->row.url));
        persist_engine(&rows->engines[index_of(rows->engine_urls, ENGINES, effect->engine)], effect);
        break;
    case PERSIST_FAILURES: persist_failures(rows, effect); break;
    case PERSIST_LEASE: persist_lease(rows, effect); break;
    case PERSIST_AGAIN: persist_again(rows, effect); break;
    case PERSIST_EARLY_CANCEL: persist_early_cancel(rows, effect); break;
    case PERSIST_SAMPLER:
        if (effect->present)
            own_stream(rows, effect->stream, effect->sampler->owner);
        /* fall through */
    case PERSIST_SAMPLED:
    case PERSIST_BATCH:
        persist_of_sampler(&rows->samplers[index_of(rows->stream_names, STREAMS, effect->stream)], effect);
        break;
    case PERSIST_EPOCH: must(effect->seq == rows->epoch); break;
    default: must(!"an effect of the ledger's that it does not know");
    }
}

/* ---- what is restored ------------------------------------------------------------------ */

static inline void restore_failures(struct core *core, const struct row_failures *row)
{
    if (row->is_set)
        must(core_restore_failures(core, &(struct core_failures){slice_from_str(row->job), row->attempt, row->infras,
                                                                 row->faults, row->blames, row->deaths, row->missing,
                                                                 row->history, row->fenced_up_to}));
}

static inline void restore_lease(struct core *core, const struct row_lease *row)
{
    if (row->job[0])
        must(core_restore_lease(core, &(struct core_lease){slice_from_str(row->job), row->token,
                                                           slice_from_str(row->worker), slice_from_str(row->key)}));
}

static inline void restore_group(struct ledger_rows *rows, struct core *core, struct row_group *row)
{
    char name[128];
    struct slice stream = slice_from_str(rows->stream_names[row->stream]);
    struct core_group_row told = {.group = slice_from_str(row->id),
                                  .stream = stream,
                                  .samples = row->samples,
                                  .task_hash = row->task_hash,
                                  .task = rows->tasks[row->task],
                                  .init_done = row->init_done,
                                  .priority = row->priority,
                                  .lease_ms = row->lease_ms,
                                  .accepted_ms = row->accepted_ms};
    must(core_restore_group(core, &told));
    for (unsigned k = 0; k < row->samples; k++) {
        const struct row_rollout *rollout = &row->rollouts[k];
        if (rollout->ended && rollout->seq < rows->streams[row->stream].first)
            continue;
        snprintf(name, sizeof(name), "%s/%u", row->id, k);
        must(core_restore_rollout(core, &(struct core_rollout_row){.rollout = slice_from_str(name),
                                                                   .group = told.group,
                                                                   .sample = k,
                                                                   .run_done = rollout->run_done,
                                                                   .run_again = rollout->run_again,
                                                                   .ended = rollout->ended,
                                                                   .run_outcome = rollout->run_outcome,
                                                                   .engine = slice_from_str(rollout->engine),
                                                                   .stream = stream,
                                                                   .seq = rollout->seq,
                                                                   .record_bytes = rollout->record_bytes,
                                                                   .ended_ms = rollout->ended_ms}));
    }
}

/* The core as a new start finds it; the next epoch. */
static inline struct core *rows_restore(struct ledger_rows *rows, const struct core_settings *settings, int64_t now_ms,
                                        int64_t wall_ms)
{
    struct core *core = core_create(settings, ++rows->epoch, now_ms);
    must(core);
    core_restore_clock(core, wall_ms);
    for (unsigned s = 0; s < STREAMS; s++)
        if (rows->streams[s].is_known)
            must(core_restore_stream(core, slice_from_str(rows->stream_names[s]),
                                     slice_from_str(rows->streams[s].owner), rows->streams[s].first,
                                     rows->streams[s].head));
    for (unsigned e = 0; e < ENGINES; e++)
        if (rows->engines[e].is_known)
            must(core_restore_engine(core, &(struct core_engine){.url = slice_from_str(rows->engine_urls[e]),
                                                                 .draining = rows->engines[e].draining,
                                                                 .runs_max = rows->engines[e].runs_max,
                                                                 .version = slice_from_str(rows->engines[e].version),
                                                                 .calls = slice_from_str(rows->engines[e].calls),
                                                                 .version_number = rows->engines[e].version_number,
                                                                 .paused_until_ms = rows->engines[e].paused_until_ms}));
    for (size_t i = 0; i < rows->group_count; i++)
        restore_group(rows, core, &rows->groups[i]);
    for (size_t i = 0; i < rows->group_count; i++) {
        restore_failures(core, &rows->groups[i].failures);
        restore_lease(core, &rows->groups[i].lease);
        for (unsigned k = 0; k < SAMPLES; k++) {
            restore_failures(core, &rows->groups[i].rollouts[k].failures);
            restore_lease(core, &rows->groups[i].rollouts[k].lease);
        }
    }
    for (unsigned s = 0; s < STREAMS; s++)
        restore_sampler(core, &rows->samplers[s], slice_from_str(rows->stream_names[s]));
    for (size_t i = 0; i < rows->early_cancel_count; i++)
        must(core_restore_early_cancel(core, slice_from_str(rows->early_cancels[i].name),
                                       slice_from_str(rows->early_cancels[i].owner), rows->early_cancels[i].wall_ms));
    return core;
}

static inline void rows_finish(struct ledger_rows *rows)
{
    for (size_t i = 0; i < rows->group_count; i++) {
        free((void *)rows->groups[i].failures.history.data);
        for (unsigned k = 0; k < SAMPLES; k++)
            free((void *)rows->groups[i].rollouts[k].failures.history.data);
    }
    for (unsigned s = 0; s < STREAMS; s++)
        forget_sampler(&rows->samplers[s]);
}

#endif
