#include "broker/simulate/program.h"

#include <string.h>
#include <unistd.h>

#include "broker/simulate/report/report.h"
#include "common/base/clock.h"

/* ---- progress ---------------------------------------------------------------------------- */

struct progress {
    int64_t began_ms, said_ms;
};

/* On stderr, every few seconds. */
static void tell(void *arg, double done)
{
    enum { PERIOD_MS = 3000 };
    struct progress *progress = arg;
    int64_t now_ms = clock_ms();
    if (now_ms - progress->said_ms < PERIOD_MS)
        return;
    progress->said_ms = now_ms;
    fprintf(stderr, "sluice-simulate: %.0f %% of the rollouts have ended, after %lld s\n", 100 * done,
            (long long)(now_ms - progress->began_ms) / 1000);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A name or KEY=RANGE,... unless it is the path of something. */
static int read_tasks(struct shape *shape, const char *tasks)
{
    struct fail fail = {0};
    bool is_file = access(tasks, F_OK) == 0 || (strchr(tasks, '/') && !strchr(tasks, '='));
    int code = is_file ? shape_read(shape, tasks, &fail) : shape_parse(shape, tasks, &fail);
    if (code == 0 && shape->left_out)
        fprintf(stderr,
                "sluice-simulate: %llu trajectories of %s are left out: they did not end ok or as the "
                "agent's, or made no model call\n",
                (unsigned long long)shape->left_out, tasks);
    if (code == 0)
        return 0;
    fprintf(stderr, "sluice-simulate: --tasks: %s\n", fail.text);
    return is_file ? SIMULATE_FAILED : SIMULATE_USAGE;
}

static struct fleet fleet_of(const struct simulate_options *options)
{
    return (struct fleet){
        .slots = {options->init_slots, options->slots, options->eval_slots},
        .workers = {options->init_nodes, options->nodes, options->eval_nodes},
        .engines = options->engines,
        .speed = {(double)options->tokens_per_second, (double)options->call_tokens_per_second,
                  (double)options->prefill_tokens_per_second, options->engine_calls, options->cache_tokens},
    };
}

static int simulate_it(const struct simulate_options *options, const struct shape *shape)
{
    const struct fleet fleet = fleet_of(options);
    struct load load = {.shape = shape,
                        .samples = options->samples,
                        .seed = options->seed,
                        .groups = (options->queued + options->samples - 1) / options->samples,
                        .per_hour = (double)options->per_hour};
    simulate_sampling(options, &load.sampling);
    struct figures figures;
    struct fail fail = {0};
    struct progress progress = {clock_ms(), clock_ms()};
    if (simulate(&fleet, &load, tell, &progress, &figures, &fail) < 0) {
        fprintf(stderr, "sluice-simulate: %s\n", fail.text);
        return SIMULATE_FAILED;
    }
    const struct report report = {&fleet, &load, options->tasks, &figures,
                                  (double)(clock_ms() - progress.began_ms) / 1000};
    bool is_written = true;
    if (options->json)
        is_written = report_json(&report, stdout);
    else
        report_print(&report, stdout);
    return is_written && fflush(stdout) == 0 ? 0 : SIMULATE_FAILED;
}

int simulate_main(int argc, char **argv)
{
    struct simulate_options options;
    struct shape shape = {0};
    int status = simulate_options_begin(argc - 1, argv + 1, &options);
    if (status >= 0)
        return status;
    status = read_tasks(&shape, options.tasks);
    if (status == 0)
        status = simulate_it(&options, &shape);
    shape_finish(&shape);
    return status;
}
