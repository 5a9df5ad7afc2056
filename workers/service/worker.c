#include "workers/service/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "workers/agents/sessions/sessions.h"
#include "workers/engines/engines.h"
#include "workers/handlers/handlers.h"
#include "common/loop/loop_now.h"
#include "common/net/bundle.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/service/beat_time.h"
#include "workers/service/cancel.h"
#include "workers/service/leave.h"
#include "workers/service/live_reports.h"
#include "workers/service/load_reports.h"
#include "workers/service/orders.h"
#include "workers/service/session_reports.h"
#include "workers/jobs/result.h"
#include "common/base/text.h"
#include "workers/service/worker_inside.h"
#include "workers/tools/search/search_service.h"

enum {
    UNREACHED_MS = 3000, /* since its first beat, without a word of the broker */
    MESSAGES_A_TURN = 256,
    LINGER_MS = 2000, /* for the last beat and results to leave */
    CONNECTIONS_MIN = 16,
    NODE_ERROR_MS = 600000 /* it is told for so long after it is over */
};

/* ---- the beat --------------------------------------------------------------------------- */

/* While the outbox is full it says it has no slot beyond those it holds. */
static uint64_t slots_to_say(const struct worker *worker)
{
    uint64_t held = worker->running.live_count + worker->outbox.count;
    uint64_t slots = outbox_is_full(&worker->outbox) ? held : running_slots(&worker->running, worker->plan.given.slots);
    return slots > 65536 ? 65536 : slots ? slots : 1;
}

/* What an operator wants to know of the node; as much of it as the message takes. */
static void say_node(struct worker *worker, struct msg_worker_beat *beat)
{
    const struct worker_plan *plan = &worker->plan;
    beat->sandbox = slice_from_str(plan->sandbox);
    beat->sandbox_why = slice_from_str(plan->sandbox_why);
    beat->kernel = text_cut(worker->node.release, 64);
    beat->sandboxes = spawner_count(worker->context.spawner);
    beat->has_sandbox = beat->sandbox.len > 0;
    beat->has_sandbox_why = beat->sandbox_why.len > 0;
    beat->has_kernel = beat->kernel.len > 0;
    beat->has_sandboxes = true;
    const bool has_own = worker->node_error[0] && loop_now_ms() < worker->node_error_until_ms;
    beat->node_error = slice_from_str(has_own ? worker->node_error : handlers_error(worker->context.handlers));
    beat->has_node_error = beat->node_error.len > 0;
    beat->offers = worker_say_offers(worker);
    beat->has_offers = beat->offers.len > 0;
}

static bool beat_encode(struct worker *worker, struct buffer *out)
{
    AUTO_BUFFER packed = {0};
    if (!running_list_jobs(&worker->running, &packed) || !outbox_list_jobs(&worker->outbox, &packed))
        return false;
    struct msg_worker_beat beat = {
        .worker = slice_from_str(worker->id),
        .stage = slice_from_str(stage_wire(worker->plan.stage)),
        .slots = slots_to_say(worker),
        .lane = slice_from_str(worker->lane.endpoint),
        .has_bundles = true,
        .bundles = true,
        .has_shares_tasks = true,
        .shares_tasks = true,
        .host = slice_from_str(worker->host),
        .progress = loop_progress(worker->context.loop),
        .draining = worker->state != WORKER_WORKING || running_slots(&worker->running, worker->plan.given.slots) == 0,
        .epoch = worker->epoch,
        .engines = worker->engines_heard,
        .has_engines = worker->plan.stage != STAGE_INIT,
        .jobs = {buffer_peek(&packed), (uint32_t)(worker->running.live_count + worker->outbox.count)},
    };
    say_node(worker, &beat);
    struct refusal no;
    if (message_encode(MSG_worker_beat, &beat, out, &no))
        return true;
    log_event(LOG_ERROR, "beat.refused", "field=%s why=\"%s\" action=skipped", no.field, no.text);
    return false;
}

/* Skipped while the broker is away, so that none pile up; sent as soon as it is back. */
static void send_wanted_beat(struct worker *worker)
{
    AUTO_BUFFER bytes = {0};
    if (!worker->beat_wanted || !lane_can_send(&worker->lane))
        return;
    worker_send_loads(worker);
    worker_send_migrations(worker);
    worker_send_progress(worker);
    if (lane_can_send(&worker->lane) && beat_encode(worker, &bytes))
        worker->beat_wanted = !lane_send_copy(&worker->lane, buffer_peek(&bytes));
    if (!worker->first_beat_ms && !worker->beat_wanted)
        worker->first_beat_ms = loop_now_ms();
}

/* Its beats leave and nothing ever came: the broker's connections to it are refused or dropped on their way. */
static void say_unreached(struct worker *worker)
{
    if (worker->epoch || worker->said_unreached || !worker->first_beat_ms ||
        loop_now_ms() - worker->first_beat_ms < UNREACHED_MS)
        return;
    worker->said_unreached = true;
    log_event(LOG_WARN, "worker.unreached",
              "lane=%s why=\"the broker has not connected to it: let connections from the broker's machine to that "
              "port through, or say with --advertise where it can be reached; `sluice status` shows what the broker "
              "sees\" action=no-jobs",
              worker_get_lane(worker));
}

static void say_malformed(struct worker *worker)
{
    if (worker->malformed == worker->malformed_said)
        return;
    const struct refusal *last = &worker->malformed_last;
    log_event(LOG_WARN, "lane.malformed", "count=%llu reason=%s field=%s why=\"%s\" action=dropped",
              (unsigned long long)worker->malformed, refusal_wire(last->reason), last->field, last->text);
    worker->malformed_said = worker->malformed;
}

static void beat_due(void *arg)
{
    struct worker *worker = arg;
    const int64_t wait_ms = beat_time_wait_ms(clock_wall_ms());
    worker->beat_timer = loop_after(worker->context.loop, wait_ms, beat_due, worker);
    if (!worker->beat_timer)
        abort(); /* a worker that cannot beat is dead; better seen at once */
    worker->beat_wanted = true;
    loop_post(worker->context.loop, &worker->more); /* should ZeroMQ ever have been interrupted when it was asked */
    fibers_trim();
    worker_remind_of_sessions(worker);
    worker_watch_cache(worker);
    say_malformed(worker);
    say_unreached(worker);
    const char *why = lane_mend(&worker->lane, loop_now_ms());
    if (why)
        log_event(LOG_WARN, "worker.auth-refused", "broker=%s why=\"%s\" action=tries-again", worker->plan.given.broker,
                  why);
    outbox_resend_due(&worker->outbox, loop_now_ms());
}

static void obey_all(struct worker *worker, struct slice bundle)
{
    struct slice message;
    size_t at = 0;
    int code;
    while ((code = bundle_next(bundle, &at, &message)) == 1)
        worker->malformed += !worker_obey(worker, message, NULL, &worker->malformed_last);
    worker->malformed += code < 0 && !refuse(&worker->malformed_last, REFUSAL_MALFORMED, NULL, "a bundle is cut short");
}

static bool receive_one(struct worker *worker)
{
    zmq_msg_t message;
    if (!lane_receive(&worker->lane, &message))
        return false;
    const struct slice bytes = slice_of(zmq_msg_data(&message), zmq_msg_size(&message));
    if (is_bundle(bytes))
        obey_all(worker, bytes);
    else
        worker->malformed += !worker_obey(worker, bytes, &message, &worker->malformed_last);
    shared_task_release(&worker->shared_task);
    zmq_msg_close(&message);
    return true;
}

/*
 * A bound at a time. ZeroMQ says anew that there is something only after it was asked in vain: so all is read when it
 * says so, and until then it is not asked, which would be two system calls each turn.
 */
static void receive_all(void *arg)
{
    struct worker *worker = arg;
    for (int count = 0; count < MESSAGES_A_TURN; count++)
        if (!receive_one(worker))
            return;
    loop_post(worker->context.loop, &worker->more);
}

static void lane_readable(void *arg, uint32_t events)
{
    (void)events;
    receive_all(arg);
}

/* Asking takes what ZeroMQ has to say; unasked, the descriptor stays ready and the loop spins. */
static void sink_spoke(void *arg, uint32_t events)
{
    (void)events;
    struct worker *worker = arg;
    lane_can_send(&worker->lane);
}

/* Before each wait all that can be sent is sent. */
static void send_all(void *arg)
{
    struct worker *worker = arg;
    worker->beat_wanted |= engines_are_awaited(worker->context.engines);
    send_wanted_beat(worker);
    worker_send_sessions(worker);
    worker->beat_wanted |= !lane_flush(&worker->lane);
    outbox_flush(&worker->outbox, &worker->lane, loop_now_ms());
}

/* ---- jobs' ends ------------------------------------------------------------------------- */

static void job_ended(void *arg, struct running_job *ended)
{
    struct worker *worker = arg;
    AUTO_BUFFER bytes = {0};
    uint64_t ms = (uint64_t)(clock_ms() - ended->started_ms);
    struct slice job = ended->job.start.job;
    log_event(LOG_DEBUG, "job.ended", "job=%.*s outcome=%s ms=%llu%s", SLICE_ARG(job),
              outcome_wire(ended->job.result.outcome), (unsigned long long)ms,
              ended->is_cancelled ? " cancelled=1" : "");
    if (!ended->is_cancelled) {
        worker_report_migration(worker, ended); /* before the result, which is then of the right engine */
        worker_tell_last(worker, ended);
    }
    if (!ended->is_cancelled && (!result_encode(&ended->job, worker->id, ended->token, ms, &bytes) ||
                                 !outbox_push(&worker->outbox, job, ended->token, &bytes)))
        log_event(LOG_ERROR, "result.lost", "job=%.*s why=\"out of memory\" action=given-back", SLICE_ARG(job));
    if (!worker->said_full && outbox_is_full(&worker->outbox))
        worker->beat_wanted = worker->said_full = true;
    worker_stop_when_idle(worker);
}

/* Every await of its fiber has long ended; what does not end is a file operation on a thread. */
static void job_overdue(void *arg, struct running_job *job)
{
    log_event(LOG_WARN, "job.overdue", "job=%.*s action=given-up", SLICE_ARG(job->job.start.job));
    worker_end_job(arg, job,
                   &(struct job_result){.outcome = OUTCOME_INFRA,
                                        .fault = FAULT_STORE,
                                        .detail = "a file operation of the store, the cache or the image does not "
                                                  "return"});
}

/* ---- life ------------------------------------------------------------------------------- */

static int make_id(struct worker *worker, struct fail *fail)
{
    uint32_t random;
    uname(&worker->node);
    if (gethostname(worker->host, sizeof(worker->host)) < 0 || getrandom(&random, sizeof(random), 0) != sizeof(random))
        return fail_set(fail, -errno, "cannot name this worker: %s", strerror(errno));
    for (char *at = worker->host; *at; at++)
        if (!name_is_valid(slice_of(at, 1)))
            *at = '-';
    snprintf(worker->id, sizeof(worker->id), "%s-%d-%08x", worker->host, (int)getpid(), random);
    return 0;
}

static int watch_cache(struct worker *worker, struct fail *fail)
{
    const char *node_error = worker->plan.node_error;
    struct slice fits = text_cut(node_error ? node_error : "", sizeof(worker->node_error) - 1);
    snprintf(worker->node_error, sizeof(worker->node_error), "%.*s", SLICE_ARG(fits));
    text_sanitize(worker->node_error);
    worker->node_error_until_ms = loop_now_ms() + NODE_ERROR_MS;
    worker->context.cache_watch = &worker->cache_watch;
    return cache_watch_open(&worker->cache_watch, worker->plan.cache, worker->plan.mount_point, fail);
}

/* What an engine serves is told soon, as rollouts may wait for it. */
static void probe_ended(void *arg)
{
    struct worker *worker = arg;
    struct engine_news news;
    worker->beat_wanted |= engines_tell_next(worker->context.engines, &news) && news.is_other;
    worker_stop_when_idle(worker);
}

/* What is offered is told soon, as rollouts may wait for it. */
static void offers_changed(void *arg)
{
    struct worker *worker = arg;
    worker->beat_wanted = true;
    worker_stop_when_idle(worker);
}

static int make_handlers(struct worker *worker, struct fail *fail)
{
    const struct worker_plan *plan = &worker->plan;
    const struct handlers_plan handlers = {.stage = plan->stage,
                                           .texts = plan->given.handler.items,
                                           .count = plan->given.handler.count,
                                           .hooks = plan->given.hook.items,
                                           .hook_count = plan->given.hook.count,
                                           .hook_ms = (int64_t)plan->given.hook_timeout_ms,
                                           .processes = plan->given.handler_processes,
                                           .scratch = plan->cache,
                                           .changed = offers_changed,
                                           .arg = worker};
    const size_t count = handlers.count + handlers.hook_count;
    if (count > 0)
        worker->context.handlers = handlers_create(worker->context.loop, &handlers, fail);
    return count == 0 || worker->context.handlers ? 0 : fail->code;
}

static int make_context(struct worker *worker, struct fail *fail)
{
    struct job_context *context = &worker->context;
    if (watch_cache(worker, fail) < 0)
        return fail->code;
    struct http_limits limits = {.connections_max = (long)worker->plan.given.slots + 1, /* and a probe */
                                 .connect_ms = HTTP_CONNECT_MS,
                                 .silence_ms = HTTP_SILENCE_MS};
    if (limits.connections_max < CONNECTIONS_MIN)
        limits.connections_max = CONNECTIONS_MIN;
    context->layers = (struct layers){worker->plan.store, worker->plan.cache, worker->plan.cache_bytes};
    context->grants = &worker->plan.grants;
    context->loop = loop_create();
    if (!context->loop || !spawner_attach(context->spawner, context->loop))
        return fail_set(fail, -errno, "no event loop: %s", strerror(errno));
    if (worker_take_signals(worker, fail) < 0)
        return fail->code;
    context->http = http_create(context->loop, &limits, fail);
    if (!context->http)
        return fail->code;
    if (worker->plan.given.search &&
        !(context->search = search_create(context->http, worker->plan.given.search, worker->plan.search_key, fail)))
        return fail->code;
    context->engines = engines_create(context->http);
    if (context->engines)
        engines_on_probe(context->engines, probe_ended, worker);
    if (context->engines) {
        engines_set_tokenizers(context->engines, &worker->plan.tokenizers);
        engines_set_model_dirs(context->engines, &worker->plan.model_dirs);
    }
    context->image_names = &worker->plan.image_names;
    context->task_dirs = &worker->plan.task_dirs;
    context->harness_dirs = &worker->plan.harness_dirs;
    context->images = images_create(context->loop, worker->plan.cache, worker->plan.given.images_max_bytes,
                                    &worker->plan.images);
    if (!context->engines || !context->images)
        return fail_memory(fail);
    const int code = make_handlers(worker, fail);
    return code < 0 ? code : worker_take_sessions(worker, fail);
}

static int open_lane(struct worker *worker, struct fail *fail)
{
    struct lane_plan plan = {.broker = worker->plan.given.broker,
                             .advertise = worker->plan.given.advertise,
                             .port_first = worker->plan.port_first,
                             .port_last = worker->plan.port_last,
                             .worker = worker->id,
                             .key = worker->plan.key,
                             .allow_plaintext = worker->plan.given.allow_plaintext};
    worker->zmq = zmq_ctx_new();
    if (!worker->zmq)
        return fail_set(fail, -errno, "ZeroMQ does not start: %s", zmq_strerror(errno));
    return lane_open(&worker->lane, worker->zmq, &plan, fail);
}

static int watch_all(struct worker *worker, struct fail *fail)
{
    struct loop *loop = worker->context.loop;
    int fds[2];
    if (!lane_fds(&worker->lane, fds))
        return fail_set(fail, -errno, "no ZeroMQ descriptor: %s", zmq_strerror(errno));
    worker->watches[0] = loop_watch(loop, fds[0], EPOLLIN, lane_readable, worker);
    worker->watches[1] = loop_watch(loop, fds[1], EPOLLIN, sink_spoke, worker);
    worker->beat_timer = loop_after(loop, 0, beat_due, worker);
    if (!worker->watches[0] || !worker->watches[1] || !worker->beat_timer)
        return fail_memory(fail);
    worker->more = (struct loop_soon){.run = receive_all, .arg = worker};
    loop_set_prepare(loop, send_all, worker);
    return 0;
}

struct worker *worker_open(const struct worker_plan *plan, struct spawner *spawner, struct fail *fail)
{
    struct fail words;
    fail = fail ? fail : &words;
    struct worker *worker = calloc(1, sizeof(*worker));
    if (!worker) {
        fail_memory(fail);
        spawner_stop(&spawner);
        return NULL;
    }
    worker->plan = *plan;
    worker->context.spawner = spawner;
    worker->signals = -1;
    outbox_init(&worker->outbox, plan->given.outbox_bytes);
    running_init(&worker->running, &worker->context);
    worker->running.ended = job_ended;
    worker->running.overdue = job_overdue;
    worker->running.arg = worker;
    if (make_id(worker, fail) < 0 || make_context(worker, fail) < 0 || open_lane(worker, fail) < 0 ||
        watch_all(worker, fail) < 0)
        worker_close(&worker);
    return worker;
}

bool worker_close(struct worker **worker)
{
    struct worker *old = *worker;
    if (!old)
        return true;
    lane_close(&old->lane, LINGER_MS);
    if (old->zmq)
        zmq_ctx_term(old->zmq); /* waits for what is still to leave */
    old->zmq = NULL;
    spawner_stop(&old->context.spawner);
    if (old->running.live_count + old->running.leaving_count > 0)
        return false;
    for (int i = 0; old->context.loop && i < 3; i++)
        loop_unwatch(old->context.loop, &old->watches[i]);
    sessions_destroy(&old->context.sessions);
    handlers_destroy(&old->context.handlers);
    outbox_finish(&old->outbox);
    running_finish(&old->running);
    images_destroy(&old->context.images);
    engines_destroy(&old->context.engines);
    search_destroy(&old->context.search);
    http_destroy(&old->context.http);
    loop_destroy(&old->context.loop);
    if (old->signals >= 0)
        close(old->signals);
    cache_watch_close(&old->cache_watch);
    free(take_ptr(worker));
    return true;
}

const char *worker_get_id(const struct worker *worker) { return worker->id; }
const char *worker_get_lane(const struct worker *worker) { return worker->lane.endpoint; }

const char *worker_node_error(const struct worker *worker) { return worker->node_error; }

enum worker_end worker_run(struct worker *worker)
{
    loop_run(worker->context.loop);
    send_all(worker); /* the last beat and results */
    return worker->end;
}
