#include "client/cli/grade/grade_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "client/cli/connect.h"
#include "client/cli/commands/engine_probe.h"
#include "client/cli/grade/grade_print.h"
#include "client/cli/grade/own_service.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    STEP_MS = 500,
    SILENCE_MS = 3000, /* then what is waited for is told */
    PROBE_MS = 2000,
    OFFERS_MS = 30000, /* in which a handler says what it offers ... */
    DIED_MS = 3000,    /* ... or this, where one has died meanwhile */
    PATIENT_MS = 30000,
    POLL_MS = 50
};

struct grade_work {
    struct grade_jobs *jobs;
    struct own_service service;
    struct sluice_client *client;
    char stream[48];
    size_t ended, printed;
    int64_t heard_ms;
    char waits[512]; /* as last told */
};

/* ---- signals: what was begun is ended first ------------------------------------------------------ */

static volatile sig_atomic_t told_by;

static void take_signal(int signal)
{
    told_by = signal;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL); /* the second one ends this; the keeper ends the rest */
}

static void take_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction ours = {.sa_handler = take_signal};
    for (size_t i = 0; i < ROWS(signals); i++)
        sigaction(signals[i], &ours, NULL);
}

/* ---- the service ----------------------------------------------------------------------------------- */

static bool add_each(struct own_service *service, const char *option, const struct texts *values)
{
    bool good = true;
    for (size_t i = 0; i < values->count; i++)
        good = own_service_add(service, option, values->items[i]) && good;
    return good;
}

static int start(struct grade_work *work, struct fail *fail)
{
    const struct grade_options *options = work->jobs->options;
    struct own_service *service = &work->service;
    service->data = options->data;
    service->log = options->log;
    bool good = own_service_add(service, "--grace", "0s") && own_service_add(service, "--tries", "1") &&
                add_each(service, "--handler", &options->handlers) && add_each(service, "--images", &options->images) &&
                add_each(service, "--image-name", &options->image_names) &&
                add_each(service, "--grant", &options->grants);
    if (options->sandbox)
        good = own_service_add(service, "--sandbox", options->sandbox) && good;
    for (size_t i = 0; i < work->jobs->dirs.count; i++)
        good = own_service_add(service, "--task-dir", work->jobs->dirs.each[i]) && good;
    return good ? own_service_start(service, fail) : fail_set(fail, -E2BIG, "there are too many options");
}

static int fail_client(const struct grade_work *work, int code, struct fail *fail)
{
    return fail_set(fail, code, "%s", sluice_error(work->client));
}

static int add_judges(struct grade_work *work, struct fail *fail)
{
    const struct texts *engines = &work->jobs->options->engines;
    int code = 0;
    for (size_t i = 0; work->jobs->policy && i < engines->count && code == 0; i++) {
        if ((code = engine_probe(engines->items[i], PROBE_MS, fail)) < 0)
            fail_wrap(fail, "the engine %s does not answer", engines->items[i]);
        else if ((code = sluice_engine_add_to(work->client, engines->items[i], 0, work->jobs->policy)))
            fail_client(work, code, fail);
    }
    return code;
}

/* Among what any worker offers: words NAME@VERSION. */
static bool is_offered(const json_t *status, const char *need)
{
    const json_t *worker;
    size_t i;
    json_array_foreach(json_object_get(status, "workers"), i, worker)
    {
        const char *offers = json_string_value(json_object_get(worker, "offers"));
        const size_t len = strlen(need);
        for (const char *at = offers; at && (at = strstr(at, need)); at += len)
            if ((at == offers || at[-1] == ' ') && (at[len] == '@' || at[len] == ' ' || at[len] == '\0'))
                return true;
    }
    return false;
}

/* What is not offered yet, or NULL; *ret: negative where the broker does not answer. */
static const char *missing_need(struct grade_work *work, int *ret)
{
    const char *text, *missing = NULL;
    *ret = sluice_status(work->client, &text);
    json_t *status = *ret ? NULL : json_loads(text, 0, NULL);
    for (size_t i = 0; i < work->jobs->need_count && !missing; i++)
        if (!is_offered(status, work->jobs->needs[i]))
            missing = work->jobs->needs[i];
    json_decref(status);
    return missing;
}

static bool is_too_late(const struct grade_work *work, int64_t begun_ms)
{
    const int64_t ms = clock_ms() - begun_ms;
    char died[64] = "";
    if (ms >= DIED_MS)
        own_service_last_event(&work->service, "handler.died", died, sizeof(died));
    return ms >= OFFERS_MS || *died;
}

static int fail_missing(const struct grade_work *work, const char *missing, struct fail *fail)
{
    char said[320];
    own_service_last_event(&work->service, "handler.said ", said, sizeof(said));
    return fail_set(fail, -ENOENT, "no handler offers the evaluator %s%s%s", strchr(missing, ':') + 1,
                    *said ? "; the last that one said:" : "", said + strcspn(said, " "));
}

static int await_handlers(struct grade_work *work, struct fail *fail)
{
    const int64_t begun_ms = clock_ms();
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    int code = 0;
    for (const char *missing; work->jobs->need_count && (missing = missing_need(work, &code));) {
        if (told_by || code)
            break;
        if (is_too_late(work, begun_ms))
            return fail_missing(work, missing, fail);
        nanosleep(&pause, NULL);
    }
    return told_by ? -EINTR : code ? fail_client(work, code, fail) : 0;
}

/* ---- jobs ------------------------------------------------------------------------------------------- */

static int submit(struct grade_work *work, struct fail *fail)
{
    struct grade_jobs *jobs = work->jobs;
    AUTO_FREE struct sluice_group *groups = calloc(jobs->count + 1, sizeof(*groups));
    size_t count = 0;
    if (!groups)
        return fail_memory(fail);
    for (size_t i = 0; i < jobs->count; i++) {
        struct grade_job *job = &jobs->each[i];
        snprintf(job->group, sizeof(job->group), "%s-%zu", work->stream, i);
        if (job->json)
            groups[count++] = (struct sluice_group){
                .group = job->group, .stream = work->stream, .task_json = job->json, .samples = 1};
        else if (!grade_print_refused(job))
            return fail_memory(fail);
    }
    work->ended = jobs->count - count;
    int code = sluice_subscribe(work->client, work->stream, 1);
    if (!code)
        code = sluice_submit_many(work->client, groups, count);
    return code ? fail_client(work, code, fail) : 0;
}

/* What is there by now, in order. */
static void print_done(struct grade_work *work)
{
    for (; work->printed < work->jobs->count && work->jobs->each[work->printed].has_ended; work->printed++) {
        struct grade_job *job = &work->jobs->each[work->printed];
        fputs(job->printed ? job->printed : "", stdout);
        free(take_ptr(&job->printed));
    }
    fflush(stdout);
}

static int take(struct grade_work *work, const struct sluice_trajectory *trajectory, struct fail *fail)
{
    const char *dash = strrchr(trajectory->group, '-');
    const size_t i = dash ? strtoul(dash + 1, NULL, 10) : work->jobs->count;
    work->heard_ms = clock_ms();
    work->waits[0] = '\0';
    if (i >= work->jobs->count || work->jobs->each[i].has_ended)
        return 0;
    work->ended++;
    if (!grade_print(&work->jobs->each[i], trajectory, work->jobs->options))
        return fail_memory(fail);
    print_done(work);
    return 0;
}

/* Why the first that has not ended does not get on, once where it stays so. */
static void tell_waiting(struct grade_work *work)
{
    const struct sluice_filter filter = {.stream = work->stream, .limit = 1};
    const char *text;
    if (sluice_list(work->client, &filter, &text))
        return;
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollout = json_array_get(json_object_get(answer, "rollouts"), 0);
    const char *why = json_string_value(json_object_get(rollout, "why"));
    if (why && strncmp(why, work->waits, sizeof(work->waits) - 1) != 0) {
        snprintf(work->waits, sizeof(work->waits), "%s", why);
        cli_say("it waits: %s", work->waits);
    }
    json_decref(answer);
}

static int await_verdicts(struct grade_work *work, struct fail *fail)
{
    int code = 0;
    work->heard_ms = clock_ms();
    print_done(work);
    while (work->ended < work->jobs->count && code == 0) {
        const struct sluice_trajectory *trajectory;
        code = sluice_next(work->client, STEP_MS, &trajectory);
        if (told_by)
            return -EINTR;
        if (own_service_has_ended(&work->service))
            return fail_set(fail, -EIO, "the service of this command ended");
        if (code == 0)
            code = take(work, trajectory, fail);
        else if (code == -EAGAIN || code == -EINTR)
            code = 0;
        else
            return fail_client(work, code, fail);
        if (clock_ms() - work->heard_ms > SILENCE_MS)
            tell_waiting(work);
    }
    return code;
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static int work_on(struct grade_work *work, struct fail *fail)
{
    int code = start(work, fail);
    if (code < 0)
        return code;
    work->client = sluice_connect(work->service.url);
    if (!work->client)
        return fail_memory(fail);
    sluice_set_timeout(work->client, PATIENT_MS);
    code = add_judges(work, fail);
    if (code == 0)
        code = await_handlers(work, fail);
    if (code == 0)
        code = submit(work, fail);
    if (code == 0)
        code = await_verdicts(work, fail);
    if (code == 0 && work->jobs->options->data) /* which is kept */
        sluice_ack(work->client, work->stream, work->jobs->count);
    return code;
}

/* It ends as by the signal that came. */
static void end_by_signal(void)
{
    signal(told_by, SIG_DFL);
    raise(told_by);
}

static bool needs_service(const struct grade_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->each[i].json)
            return true;
    return false;
}

static int print_refused(struct grade_work *work, struct fail *fail)
{
    for (size_t i = 0; i < work->jobs->count; i++)
        if (!grade_print_refused(&work->jobs->each[i]))
            return fail_memory(fail);
    print_done(work);
    return 0;
}

enum grade_status grade_run(struct grade_jobs *jobs)
{
    struct grade_work work = {.jobs = jobs};
    struct fail fail = {0};
    enum grade_status worst = GRADE_FULL;
    snprintf(work.stream, sizeof(work.stream), "grade-%llx-%x", (unsigned long long)time(NULL), (unsigned)getpid());
    unsetenv("SLUICE_KEY"); /* of another broker */
    take_signals();
    const int code = needs_service(jobs) ? work_on(&work, &fail) : print_refused(&work, &fail);
    sluice_close(&work.client);
    own_service_stop(&work.service);
    if (told_by)
        end_by_signal();
    if (code != 0)
        cli_say("%s", fail.text);
    for (size_t i = 0; i < jobs->count; i++)
        worst = jobs->each[i].status > worst ? jobs->each[i].status : worst;
    return code != 0 ? GRADE_NO_VERDICT : worst;
}
