/*
 * Who has the ledger. While its thread is at a batch the core goes on, and what comes of that fills the next one. A
 * commit costs as much as some eighty rollouts in it, so a batch waits for company as long as some comes. What is
 * little, while nothing else is at work, is done here and now, without a journey to another thread; then jobs leave
 * before their batch is committed, which a worker need not wait for either.
 */
#include "broker/io/inner.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#ifndef HANDOVER_LITTLE
#define HANDOVER_LITTLE 192 /* effects that are the ledger's: of some twenty rollouts */
#endif

enum {
    BATCH_EFFECTS = 4096, /* ... of which no more are begun before the thread is waited for */
    GATHER_MS = 3,        /* a batch waits for company at most so long */
    BUSY_MS = 20,         /* so long after a batch the next one, however small, waits for company as well */
    STUCK_MS = 250        /* at something for so long, the thread is waited for */
};

static void work(void *context, void *thing)
{
    struct io *io = context;
    struct batch *batch = thing;
    if (batch == &io->chore)
        batch->code = ledger_do_chores(io->ledger, &batch->fail);
    else {
        batch_do(batch, io->ledger, &io->held);
        batch_commit(batch, io->ledger);
    }
}

int io_start_ledger_thread(struct io *io, struct fail *fail)
{
    io->committed = ledger_committed(io->ledger);
    return io->ledger_dir ? ledger_thread_start(&io->ledger_thread, work, io, fail) : 0;
}

void io_stop_ledger_thread(struct io *io)
{
    if (io->ledger_thread && !io->spare) /* the thread has it, and does it first */
        io->spare = ledger_thread_await(io->ledger_thread);
    ledger_thread_stop(&io->ledger_thread);
}

bool io_has_ledger(const struct io *io) { return !io->ledger_thread || ledger_thread_is_idle(io->ledger_thread); }

/* The core must not go on before the ledger has followed. */
static bool is_full(const struct io *io)
{
    const struct batch *batch = io->filling;
    return batch->inbound_count >= INBOUND_MAX || batch->inbound_bytes >= INBOUND_BYTES_MAX ||
           batch->loads >= LOADS_MAX || core_effects(io->core).count >= BATCH_EFFECTS;
}

bool io_is_gathering(const struct io *io) { return io->gathering_until_ms > 0; }

/* The ledger is ours: is what there is to be handed over? */
static bool is_ripe(struct io *io)
{
    const struct effects effects = core_effects(io->core);
    const int64_t now_ms = clock_ms();
    if (!io->ledger_thread || !effects.count)
        return true;
    if (!io->gathering_until_ms && batch_count_work(io->filling, effects) <= HANDOVER_LITTLE &&
        now_ms - io->given_ms >= BUSY_MS)
        return true;
    if (!io->gathering_until_ms)
        io->gathering_until_ms = now_ms + GATHER_MS;
    return is_full(io) || io->is_quiet || now_ms >= io->gathering_until_ms;
}

/* What the ledger failed with. */
static int code_of(const struct batch *batch, struct fail *fail)
{
    return batch->code ? fail_set(fail, batch->code, "%s", batch->fail.text) : 0;
}

/* The ledger has done it, and all before it, and workers were told: the rest may leave. */
static int end(struct io *io, struct batch *batch, struct fail *fail)
{
    io->committed = batch->commit;
    int code = io_send_batch(io, batch, fail);
    io->lane_changes = batch->lane_changes;
    batch_clear(batch);
    return code;
}

/* The same of what the thread was at. */
static int end_given(struct io *io, struct batch *batch, struct fail *fail)
{
    if (batch == &io->chore)
        return 0;
    int code = io_send_lanes(io, batch, fail);
    return code ? code : end(io, batch, fail);
}

/* What the core wants to be done; NULL: nothing. */
static struct batch *take_batch(struct io *io)
{
    struct batch *batch = io->filling;
    io->gathering_until_ms = 0;
    io->batch_number++;
    if (!core_effects(io->core).count) {
        batch_clear(batch); /* messages of which nothing came */
        return NULL;
    }
    core_effects_take(io->core, &batch->effects);
    batch->lane_changes = core_lane_changes(io->core);
    return batch;
}

static int give(struct io *io, struct batch *batch, struct fail *fail)
{
    int code = looks_ahead(&io->looks, io->ledger, fail);
    if (code)
        return code;
    ledger_thread_give(io->ledger_thread, batch);
    io->begun_ms = clock_ms();
    return 0;
}

static int give_batch(struct io *io, struct batch *batch, struct fail *fail)
{
    int code = give(io, batch, fail);
    if (code)
        return code;
    io->given_ms = io->begun_ms;
    io->filling = take_ptr(&io->spare);
    return 0;
}

static void note_held_up(struct io *io)
{
    const int64_t took_ms = clock_ms() - io->begun_ms;
    if (took_ms >= STUCK_MS)
        io->held_up_ms += took_ms;
}

static int do_here(struct io *io, struct batch *batch, struct fail *fail)
{
    io->begun_ms = clock_ms();
    batch_do(batch, io->ledger, &io->held);
    if (batch->code == 0)
        batch->code = io_send_lanes(io, batch, &batch->fail);
    lanes_flush(io->lanes, io->begun_ms);
    batch_commit(batch, io->ledger);
    core_effects_done(io->core);
    note_held_up(io);
    int code = code_of(batch, fail);
    return code ? code : end(io, batch, fail);
}

/* The thread is at the next batch before that is sent which it has done; what is done here comes after that. */
static int hand_over(struct io *io, struct batch *done, struct fail *fail)
{
    const bool is_little = batch_count_work(io->filling, core_effects(io->core)) <= HANDOVER_LITTLE;
    struct batch *batch = take_batch(io);
    const bool is_given = batch && io->ledger_thread && !is_little;
    int code = is_given ? give_batch(io, batch, fail) : 0;
    if (code == 0 && done)
        code = end_given(io, done, fail);
    return code == 0 && batch && !is_given ? do_here(io, batch, fail) : code;
}

/* The ledger is ours; `done`: what the thread was at, or NULL. */
static int go_on(struct io *io, struct batch *done, struct fail *fail)
{
    int code = done ? code_of(done, fail) : 0;
    if (code == 0)
        code = ledger_standing(io->ledger, fail);
    looks_release(&io->looks);
    if (done && done != &io->chore) {
        io->spare = done;
        core_effects_done(io->core);
    }
    if (code == 0)
        code = io_tend_ledger(io, fail);
    if (code == 0 && is_ripe(io))
        return hand_over(io, done, fail);
    return code == 0 && done ? end_given(io, done, fail) : code;
}

/*
 * Of what the core has done since, nothing leaves before the thread is done. When a disk hangs the core must not go on
 * for long, or it misses jobs at workers that it has not sent them yet: it stands still as well, and all the time in
 * which nothing left is given to those jobs (stall.h).
 */
static struct batch *await_thread(struct io *io)
{
    struct batch *done = ledger_thread_await(io->ledger_thread);
    note_held_up(io);
    return done;
}

static bool must_wait(const struct io *io) { return is_full(io) || clock_ms() - io->begun_ms >= STUCK_MS; }

int io_carry_out(struct io *io, struct fail *fail)
{
    if (core_failed(io->core))
        return fail_set(fail, -ENOMEM,
                        "out of memory; nothing acknowledged is lost: give the "
                        "broker more, or lower --rollouts-max, and start it again");
    if (io_has_ledger(io))
        return go_on(io, NULL, fail);
    struct batch *done = must_wait(io) ? await_thread(io) : ledger_thread_take(io->ledger_thread);
    return done ? go_on(io, done, fail) : 0;
}

int io_carry_out_all(struct io *io, struct fail *fail)
{
    int code = 0;
    while (code == 0 && (!io_has_ledger(io) || core_effects(io->core).count)) {
        io->is_quiet = true;
        code = go_on(io, io_has_ledger(io) ? NULL : ledger_thread_await(io->ledger_thread), fail);
    }
    return code;
}

bool io_has_chores(const struct io *io)
{
    return io_has_ledger(io) && !io_is_gathering(io) && ledger_has_chores(io->ledger);
}

int io_do_chores(struct io *io, struct fail *fail)
{
    return io->ledger_thread ? give(io, &io->chore, fail) : ledger_do_chores(io->ledger, fail);
}
