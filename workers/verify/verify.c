/* verify.c - the lanes: each takes the next trajectory, checks it, has it scored, and tells. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/engines/engines.h"
#include "workers/engines/server/engine_state.h"
#include "workers/runtime/fiber.h"
#include "workers/verify/checks.h"
#include "workers/verify/plot.h"
#include "workers/verify/print.h"
#include "workers/verify/report.h"
#include "workers/verify/sample.h"
#include "workers/verify/scoring.h"
#include "workers/verify/verify.h"

enum { PROGRESS_MS = 10000 };

struct verification {
    const struct verify_options *options;
    FILE *file, *out;
    struct loop *loop;
    struct loop_timer *progress;
    struct verify_engine engine;
    struct report all;
    uint64_t line, lanes, done; /* done: tokens scored, a second time included */
    int64_t began_ms;
    bool at_end;
    struct fail why; /* what ended it before the file did */
};

/* ---- one trajectory ------------------------------------------------------------------------ */

static int take_one(struct verification *all, const struct sample *given, struct report *ret, struct fail *fail)
{
    int error = checks_run(&all->engine, given, ret, fail);
    if (error == 0)
        error = scoring_run(&all->engine, given, all->options, &all->done, ret, fail);
    return error;
}

/* The next line; false at the file's end, or where nothing more can be done. */
static bool take_next(struct verification *all)
{
    struct sample given;
    struct fail fail = {0};
    int got = all->at_end ? 0 : sample_next(all->file, &all->line, &given, &fail);
    if (got == 0) {
        all->at_end = true;
        return false;
    }
    struct report report = {.trajectories = 1};
    if (got == -EINVAL)
        report_note(&report, &report.damaged, 1, "%s: %s", given.rollout, fail.text);
    int error = got == -EINVAL ? 0 : got < 0 ? got : take_one(all, &given, &report, &fail);
    if (all->options->json)
        verify_print_json(given.rollout, &report, all->options, all->out);
    else
        verify_print_wrong(given.rollout, &report, all->out);
    report_join(&all->all, &report);
    sample_finish(&given);
    if (error < 0 && all->why.code == 0)
        all->why = fail;
    all->at_end |= error < 0;
    return error == 0;
}

static void run_lane(void *arg)
{
    struct verification *all = arg;
    while (take_next(all))
        if (await_turn(NULL) < 0)
            break;
}

/* ---- the engine, and all ---------------------------------------------------------------------- */

static void show_progress(void *arg)
{
    struct verification *all = arg;
    fprintf(stderr, "sluice-verify: %llu trajectories, %llu tokens scored, %lld s\n",
            (unsigned long long)all->all.trajectories, (unsigned long long)all->done,
            (long long)(clock_ms() - all->began_ms) / 1000);
    all->progress = loop_after(all->loop, PROGRESS_MS, show_progress, all);
}

static void end_lane(void *arg)
{
    struct verification *all = arg;
    if (--all->lanes == 0)
        loop_stop(all->loop);
}

static bool start_lane(struct verification *all, void (*run)(void *arg))
{
    if (!fiber_start(all->loop, run, end_lane, all))
        return false;
    all->lanes++;
    return true;
}

/* The first lane asks what the engine is; the others follow. */
static void run_first_lane(void *arg)
{
    struct verification *all = arg;
    struct verify_engine *engine = &all->engine;
    int error = engine_describe(engine->engine, &engine->about, &all->why);
    const struct tokens *ends = &engine->engine->info.ends;
    if (error == 0 && !tokens_append(&engine->ends, ends->ids, ends->count))
        error = fail_memory(&all->why);
    if (error < 0)
        return;
    for (uint64_t i = 1; i < all->options->parallel; i++)
        start_lane(all, run_lane);
    run_lane(all);
}

static int run_lanes(struct verification *all, struct fail *fail)
{
    const struct http_limits limits = {
        .connections_max = (long)all->options->parallel, .connect_ms = HTTP_CONNECT_MS, .silence_ms = HTTP_SILENCE_MS};
    all->loop = loop_create();
    struct http *http = all->loop ? http_create(all->loop, &limits, fail) : NULL;
    struct engines *engines = http ? engines_create(http) : NULL;
    all->engine.engine = engines ? engines_get_given(engines, all->options->engine, fail) : NULL;
    if (all->engine.engine && start_lane(all, run_first_lane)) {
        all->progress = loop_after(all->loop, PROGRESS_MS, show_progress, all);
        loop_run(all->loop);
        loop_cancel(all->loop, &all->progress);
        *fail = all->why;
    } else if (fail->code == 0) {
        fail_memory(fail);
    }
    tokens_finish(&all->engine.ends);
    engines_destroy(&engines);
    http_destroy(&http);
    loop_destroy(&all->loop);
    return fail->code;
}

static bool draw(const struct report *all, const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "w");
    if (file)
        verify_plot(all, file);
    if (file && fflush(file) == 0 && !ferror(file))
        return true;
    fprintf(stderr, "sluice-verify: %s cannot be written: %s\n", path, strerror(errno));
    return false;
}

enum verify_status verify_run(const struct verify_options *options, FILE *out)
{
    bool is_stdin = strcmp(options->path, "-") == 0;
    AUTO_FCLOSE FILE *opened = is_stdin ? NULL : fopen(options->path, "r");
    struct verification all = {
        .options = options, .file = is_stdin ? stdin : opened, .out = out, .began_ms = clock_ms()};
    struct fail fail = {0};
    if (!all.file) {
        fprintf(stderr, "sluice-verify: %s: %s\n", options->path, strerror(errno));
        return VERIFY_UNSCORED;
    }
    int error = run_lanes(&all, &fail);
    if (error < 0)
        fprintf(stderr, "sluice-verify: it could not go on: %s\n", fail.text);
    if (options->json)
        verify_print_json(NULL, &all.all, options, out);
    else
        verify_print(&all.all, options, (double)(clock_ms() - all.began_ms) / 1000, out);
    bool drawn = !options->plot || draw(&all.all, options->plot);
    enum verify_status status = report_judge(&all.all, options->tolerance);
    return status == VERIFY_GOOD && (error < 0 || !drawn) ? VERIFY_UNSCORED : status;
}
