#include "workers/doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/doctor/limits.h"
#include "workers/doctor/print.h"
#include "common/files/dirtree_remove.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/sandbox.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/spawner_start.h"

enum { COMMAND_MS = 10000, OUTPUT_MAX = 256, REMOVE_DEPTH = 4096 };

/* ---- one sandbox, made and used ------------------------------------------------------- */

struct trial {
    enum tier tier;
    const struct cgroups *cgroups;
    struct spawner *spawner;
    struct loop *loop;
    int code;
    int64_t took_us;
    struct fail fail;
};

static void use_sandbox(void *arg)
{
    struct trial *trial = arg;
    const struct sandbox_plan plan = {.image = "host", .memory_mib = 256, .disk_mib = 16, .processes = 16};
    struct sandbox_output output = {0};
    struct sandbox *sandbox = NULL;
    /* what the image has is removed where that is the sandbox's own */
    const char *command = tier_has_namespaces(trial->tier) ? "echo hello > f && rm -r /srv && cat f"
                                                           : "echo hello > f && mkdir d && rm -r d && cat f";
    int64_t began_us = clock_us();
    trial->code = sandbox_open(trial->spawner, &plan, &sandbox, &trial->fail);
    trial->took_us = clock_us() - began_us;
    if (trial->code == 0)
        trial->code = sandbox_command(sandbox, command, COMMAND_MS, OUTPUT_MAX, &output, &trial->fail);
    if (trial->code == 0 && (output.status != 0 || strcmp(output.text, "hello\n") != 0))
        trial->code = fail_set(&trial->fail, -EIO, "a command in it ended with %d: %.*s", output.status,
                               (int)strcspn(output.text, "\n"), output.text);
    free(output.text);
    sandbox_close(&sandbox);
}

static void end_trial(void *arg) { loop_stop(((struct trial *)arg)->loop); }

static void run_trial(struct trial *trial, const char *scratch, enum tier tier)
{
    char mount_point[PATH_MAX], disks[PATH_MAX];
    snprintf(mount_point, sizeof(mount_point), "%s/mount", scratch);
    snprintf(disks, sizeof(disks), "%s/disks", scratch);
    if (mkdir(mount_point, 0700) < 0)
        fail_set(&trial->fail, -errno, "%s: %s", mount_point, strerror(errno));
    else
        trial->spawner = spawner_start_bounded(mount_point, tier, disks, trial->cgroups, &trial->fail);
    trial->loop = trial->spawner ? loop_create() : NULL;
    if (!trial->loop || !spawner_attach(trial->spawner, trial->loop) ||
        !fiber_start(trial->loop, use_sandbox, end_trial, trial))
        trial->code = trial->fail.code ? trial->fail.code : fail_memory(&trial->fail);
    else
        loop_run(trial->loop);
    spawner_stop(&trial->spawner);
    loop_destroy(&trial->loop);
}

static void try_sandbox(struct doctor_report *report, const struct cgroups *cgroups)
{
    struct trial trial = {.tier = report->tier, .cgroups = cgroups};
    char scratch[sizeof(report->cache) + 32];
    snprintf(scratch, sizeof(scratch), "%s/.doctor.XXXXXX", report->cache);
    if (!mkdtemp(scratch))
        trial.code = fail_set(&trial.fail, -errno, "cannot write to %s: %s", report->cache, strerror(errno));
    else {
        run_trial(&trial, scratch, report->tier);
        dirtree_remove(scratch);
    }
    report->sandbox_code = trial.code;
    report->sandbox_ms = (double)trial.took_us / 1000;
    if (trial.code == 0)
        snprintf(report->sandbox_text, sizeof(report->sandbox_text),
                 "a sandbox was made in %.1f ms, and a command in it wrote, removed and read", report->sandbox_ms);
    else
        snprintf(report->sandbox_text, sizeof(report->sandbox_text), "%s", trial.fail.text);
}

/* ---- all of it ------------------------------------------------------------------------ */

static enum doctor_status judge(const struct doctor_report *report)
{
    bool is_low = false;
    for (size_t i = 0; i < report->limit_count; i++)
        is_low |= !report->limits[i].is_ok;
    if (report->tier == TIER_NONE || report->sandbox_code < 0)
        return DOCTOR_NONE;
    return report->tier != (enum tier)0 || is_low ? DOCTOR_WEAK : DOCTOR_WELL;
}

/* The cache, or the nearest directory above it that is there; /tmp where we cannot write to that. */
static void find_cache(const char *cache, char *ret, size_t size)
{
    snprintf(ret, size, "%s%s", *cache == '/' ? "" : "./", cache);
    while (access(ret, F_OK) < 0) {
        char *slash = strrchr(ret, '/');
        if (!slash || slash == ret) {
            snprintf(ret, size, "/");
            return;
        }
        *slash = '\0';
    }
    if (access(ret, W_OK | X_OK) < 0)
        snprintf(ret, size, "/tmp");
}

static int choose(struct doctor_report *report, const char *tier, struct fail *fail)
{
    report->tier = probe_choose(&report->probe);
    report->is_forced = strcmp(tier, "auto") != 0;
    if (report->is_forced && tier_parse(tier, &report->tier) && probe_missing(&report->probe, report->tier) != 0)
        return probe_refuse(&report->probe, report->tier, fail);
    return report->tier == TIER_NONE ? probe_refuse(&report->probe, (enum tier)0, fail) : 0;
}

enum doctor_status doctor_run(const char *cache, const char *tier, const struct cgroups *cgroups, bool is_json,
                              FILE *out)
{
    static struct doctor_report report;
    struct fail fail = {0};
    char near[sizeof(report.cache)];
    find_cache(cache, near, sizeof(near));
    AUTO_FREE char *absolute = realpath(near, NULL);
    snprintf(report.cache, sizeof(report.cache), "%s", absolute ? absolute : near);
    int code = probe_run(report.cache, cgroups, &report.probe, &fail);
    if (code == 0)
        code = choose(&report, tier, &fail);
    if (code == 0)
        try_sandbox(&report, cgroups);
    else {
        report.sandbox_code = code;
        snprintf(report.sandbox_text, sizeof(report.sandbox_text), "%s", fail.text);
    }
    doctor_read_limits(&report);
    report.status = judge(&report);
    (is_json ? doctor_print_json : doctor_print)(&report, out);
    return report.status;
}
