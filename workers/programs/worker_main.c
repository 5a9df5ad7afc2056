/* sluice-worker: does the jobs of one stage (worker.h). */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/descriptors.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "workers/doctor/doctor.h"
#include "workers/engines/check/check.h"
#include "workers/programs/options.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/probe/probe.h"
#include "workers/sandbox/spawner_start.h"
#include "common/base/text.h"

enum {
    BEGINS_ANEW = 256, /* no exit status */
    MEMORY_KEPT = 8 << 20
};

/* From who begins anew to who does it, in the environment. */
#define NODE_ERROR_VARIABLE "SLUICE_WORKER_NODE_ERROR"

static int complain(int status, const struct fail *fail)
{
    fprintf(stderr, "sluice-worker: %s\n", fail->text);
    return status;
}

/* False when the parent was gone before it could be asked for. */
static bool follow_parent(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent;
}

static int work(const struct worker_plan *plan, struct spawner *spawner, bool *ret_clean)
{
    struct fail fail;
    struct worker *worker = worker_open(plan, spawner, &fail);
    if (!worker)
        return complain(END_NO_SOCKET, &fail);
    printf("worker ready stage=%s id=%s lane=%s\n", stage_wire(plan->stage), worker_get_id(worker),
           worker_get_lane(worker));
    fflush(stdout);
    static const int statuses[] = {
        [WORKER_STOPPED] = 0, [WORKER_BROKEN] = END_NO_SPAWNER, [WORKER_TO_BEGIN_ANEW] = BEGINS_ANEW};
    enum worker_end end = worker_run(worker);
    if (end == WORKER_TO_BEGIN_ANEW)
        setenv(NODE_ERROR_VARIABLE, worker_node_error(worker), 1);
    *ret_clean = worker_close(&worker);
    return statuses[end];
}

/* The same command line in the same process: whoever started it sees it go on. */
static int begin_anew(char **argv)
{
    char path[PATH_MAX] = "";
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len > 0) /* its name, which people look for; not so when it was replaced meanwhile */
        execv(path, argv);
    execv("/proc/self/exe", argv);
    return complain(END_NO_DIRECTORY,
                    &(struct fail){.text = "the cache was removed, and this program does not start again"});
}

/* For the operator, who sees it in `sluice status`. */
static void note_tier(struct worker_plan *plan, enum tier tier, const struct fail *why)
{
    plan->sandbox = tier_word(tier);
    struct slice fits = text_cut(why->text, sizeof(plan->sandbox_why) - 1);
    snprintf(plan->sandbox_why, sizeof(plan->sandbox_why), "%.*s", SLICE_ARG(fits));
    text_sanitize(plan->sandbox_why);
}

/* Where nothing can be made the worker works all the same: its jobs say why, and some need none. */
static int choose_tier(struct options *options, const struct cgroups *cgroups, enum tier *ret, struct fail *fail)
{
    static struct probe probe;
    int code = probe_run(options->cache, cgroups, &probe, fail);
    if (code < 0)
        return code;
    bool is_forced = tier_parse(options->plan.given.sandbox, ret);
    if (is_forced && probe_missing(&probe, *ret) != 0)
        return probe_refuse(&probe, *ret, fail);
    if (!is_forced)
        *ret = probe_choose(&probe);
    bool is_best = *ret == (enum tier)0;
    struct fail why = {0};
    if (!is_best && !is_forced)
        probe_refuse(&probe, (enum tier)0, &why);
    note_tier(&options->plan, *ret, &why);
    if (*ret != TIER_NONE) {
        log_event(is_best ? LOG_INFO : LOG_WARN, "sandbox.tier", "tier=%s%s", tier_word(*ret),
                  is_best || is_forced ? "" : " action=see-sluice-doctor");
        if (*tier_warning(*ret))
            log_event(LOG_WARN, "sandbox.weak", "tier=%s lacks=\"%s\"", tier_word(*ret), tier_warning(*ret));
        return 0;
    }
    *ret = (enum tier)0;
    probe_refuse(&probe, *ret, fail);
    log_event(LOG_ERROR, "sandbox.none", "reason=\"%s\" action=jobs-that-need-one-fail", fail->text);
    return 0;
}

/* Where sandboxes have mounts, those that are installed are had too. */
static void find_harnesses(struct worker_plan *plan, enum tier tier)
{
    struct harness_dirs *dirs = &plan->harness_dirs;
    if (plan->stage == STAGE_RUN && tier_has_namespaces(tier))
        harness_dirs_find(dirs, &plan->images);
    for (size_t i = 0; i < dirs->count; i++)
        log_event(LOG_INFO, "worker.harness", "name=%s dir=\"%s\"", dirs->each[i].name, dirs->each[i].path);
}

/* Which limits the kernel holds: where it cannot, they are watched, which is no fault. */
static void open_cgroups(const struct options *options, struct cgroups *ret)
{
    if (options->plan.given.cgroup != CGROUP_AUTO)
        cgroups_refuse(ret, "switched off by --cgroup off");
    else if (cgroups_open(ret))
        log_event(LOG_INFO, "sandbox.cgroup", "path=%s", ret->path);
    else
        log_event(LOG_DEBUG, "sandbox.watched", "reason=\"%s\"", ret->why.text);
}

/* The spawner is started while this process has one thread. */
static int run(struct options *options, const struct cgroups *cgroups)
{
    struct fail fail;
    bool is_clean = true;
    options->plan.node_error = getenv(NODE_ERROR_VARIABLE);
    if (options_make_directories(options, &fail) < 0)
        return complain(END_NO_DIRECTORY, &fail);
    enum tier tier;
    if (choose_tier(options, cgroups, &tier, &fail) < 0)
        return complain(END_NO_SPAWNER, &fail);
    find_harnesses(&options->plan, tier);
    struct spawner *spawner = spawner_start_bounded(options->mount_point, tier, options->disks, cgroups, &fail);
    int status = spawner ? work(&options->plan, spawner, &is_clean) : complain(END_NO_SPAWNER, &fail);
    if (!is_clean && status != BEGINS_ANEW)
        _exit(status); /* a fiber would not end: its stack still points to what is here */
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    const struct worker_options *given = &options.plan.given;
    struct cgroups cgroups;
    cgroups_refuse(&cgroups, "not asked for");
    log_open("worker", LOG_INFO, LOG_TEXT);
    int status = options_begin(argc - 1, argv + 1, &options);
    if (status < 0)
        log_open("worker", LOG_INFO, (enum log_format)given->log_format);
    if (status < 0 && given->engine_check) {
        status = (int)engine_check(given->engine_check, &options.plan.model_dirs, given->json, stdout);
    } else if (status < 0 && given->doctor) {
        open_cgroups(&options, &cgroups);
        status = (int)doctor_run(options.cache, given->sandbox, &cgroups, given->json, stdout);
    } else if (status < 0) {
        status = 0;
        if (!given->with_parent || follow_parent()) {
            memory_keep(MEMORY_KEPT);
            descriptors_allow_all();
            open_cgroups(&options, &cgroups);
            status = run(&options, &cgroups);
        }
    }
    cgroups_close(&cgroups);
    if (status == BEGINS_ANEW)
        status = begin_anew(argv);
    options_finish(&options);
    return status;
}
