/* From the ledger's rows to a core that goes on where the last one stopped. */
#include "broker/io/inner.h"

#include <errno.h>
#include <sys/random.h>

#include "common/base/clock.h"

static bool tell_stream(void *core, struct slice name, struct slice owner, uint64_t first, uint64_t head)
{
    return core_restore_stream(core, name, owner, first, head);
}

static bool tell_policy(void *core, const struct core_policy *row) { return core_restore_policy(core, row); }

static bool tell_engine(void *core, const struct core_engine *row) { return core_restore_engine(core, row); }

static bool tell_room(void *core, uint64_t groups) { return core_restore_room(core, groups); }

static bool tell_end(void *core) { return core_restore_end(core); }

static bool tell_group(void *core, const struct core_group_row *row) { return core_restore_group(core, row); }

static bool tell_rollout(void *core, const struct core_rollout_row *row) { return core_restore_rollout(core, row); }

static bool tell_failures(void *core, const struct core_failures *failures)
{
    return core_restore_failures(core, failures);
}

static bool tell_lease(void *core, const struct core_lease *lease) { return core_restore_lease(core, lease); }

static bool tell_sampler(void *core, const struct core_sampler *row, struct slice answer)
{
    return core_restore_sampler(core, row, answer);
}

static bool tell_sampled(void *core, const struct core_sampled *row) { return core_restore_sampled(core, row); }

static bool tell_early_cancel(void *core, struct slice name, struct slice owner, uint64_t clock_ms)
{
    return core_restore_early_cancel(core, name, owner, clock_ms);
}

/* 0 where the kernel gives none: then it is not told. */
static uint64_t draw_start_id(void)
{
    uint64_t drawn = 0;
    return getrandom(&drawn, 6, 0) == 6 ? drawn + 1 : 0;
}

int io_restore(struct io *io, const struct io_options *options, struct fail *fail)
{
    const struct core_settings *settings = &options->settings;
    uint64_t versions;
    int64_t ledger_ms = 0;
    struct moment now = moment_now();
    int code = ledger_next_epoch(io->ledger, &io->epoch, fail);
    if (code == 0)
        code = ledger_start_clock(io->ledger, &now, &ledger_ms, fail);
    if (code == 0)
        code = ledger_get_versions(io->ledger, &versions, fail);
    if (code)
        return code;
    io->core = core_create(settings, io->epoch, clock_ms());
    if (!io->core)
        return fail_set(fail, -ENOMEM, "out of memory");
    core_set_start_id(io->core, draw_start_id());
    core_set_placing(io->core, options->placing);
    core_restore_clock(io->core, ledger_ms);
    core_restore_versions(io->core, versions);
    struct ledger_reader reader = {.context = io->core,
                                   .early_cancels_since_ms = ledger_ms > settings->early_cancel_ms
                                                                 ? (uint64_t)(ledger_ms - settings->early_cancel_ms)
                                                                 : 0,
                                   .stream = tell_stream,
                                   .engine = tell_engine,
                                   .room = tell_room,
                                   .end = tell_end,
                                   .group = tell_group,
                                   .rollout = tell_rollout,
                                   .failures = tell_failures,
                                   .lease = tell_lease,
                                   .early_cancel = tell_early_cancel,
                                   .sampler = tell_sampler,
                                   .sampled = tell_sampled,
                                   .policy = tell_policy};
    return ledger_restore(io->ledger, &reader, fail);
}
