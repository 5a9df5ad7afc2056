/*
 * Evaluations by a handler beside those by a built-in evaluator, in one run: what a call costs more, how it is with
 * thousands in flight in one process, and what of that is the handler's own.
 *
 *   bench_handlers [COUNT [TOGETHER]]     prints "VALUE WHAT" lines; 20000 and 2000 if not given
 *   bench_handlers as-handler             is the handler
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/evaluators/evaluators.h"
#include "workers/handlers/roles/evaluator.h"
#include "workers/handlers/handlers.h"
#include "workers/runtime/fiber.h"

enum { FD = 3, WAIT_MS = 10000 };

static struct job_context context;
static struct loop *loop;
static size_t count = 20000, together = 2000;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_handlers: %s: %s\n", what, why);
    exit(1);
}

/* ---- the handler ---------------------------------------------------------------------------- */

static void say(enum message_id id, const void *message)
{
    AUTO_BUFFER out = {0};
    struct refusal no;
    buffer_append(&out, "\0\0\0\0", 4);
    if (!message_encode(id, message, &out, &no))
        give_up(no.field, no.text);
    const size_t len = out.len - 4;
    const uint8_t head[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    memcpy(out.data, head, 4);
    if (write(FD, out.data, out.len) != (ssize_t)out.len)
        exit(0);
}

static void read_whole(void *into, size_t len)
{
    for (uint8_t *at = into; len > 0;) {
        ssize_t got = read(FD, at, len);
        if (got <= 0)
            exit(0);
        at += got;
        len -= (size_t)got;
    }
}

static int be_handler(void)
{
    static uint8_t bytes[1 << 16];
    say(MSG_handler_hello,
        &(struct msg_handler_hello){.protocol = 1,
                                    .offers = slice_from_str("[{\"role\":\"evaluator\",\"name\":\"grade\"}]")});
    for (;;) {
        uint8_t head[4];
        enum message_id id;
        union any_message any;
        read_whole(head, sizeof(head));
        const size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (len > sizeof(bytes))
            exit(1);
        read_whole(bytes, len);
        const struct slice message = slice_of(bytes, len);
        if (message_peek(message, &id, NULL) && id == MSG_handler_begin && message_decode(id, message, &any, NULL))
            say(MSG_handler_score,
                &(struct msg_handler_score){.id = any.handler_begin.id, .reward = 1, .has_reward = true});
    }
}

/* ---- evaluations ------------------------------------------------------------------------------ */

static const char builtin_task[] = "{\"task\":\"t\",\"prompt\":\"1+1?\",\"agent\":{\"kind\":\"chat\"},"
                                   "\"eval\":{\"kind\":\"math\",\"answer\":\"2\"}}";
static const char handler_task[] = "{\"task\":\"t\",\"prompt\":\"1+1?\",\"agent\":{\"kind\":\"chat\"},"
                                   "\"eval\":{\"kind\":\"grade\"}}";

/* One evaluation as a worker makes it, from the job's bytes parsed to its verdict. */
static void evaluate(const char *json)
{
    struct refusal no = {0};
    struct job job = {.context = &context, .task = task_parse(slice_from_str(json), &no)};
    if (!job.task)
        give_up(no.field, no.text);
    job.start.task = slice_from_str(json);
    job.start.group = slice_from_str("g");
    job.start.answer = slice_from_str("It is \\boxed{2}.");
    job.start.has_answer = true;
    job_begin(&job, STAGE_EVAL);
    const struct evaluator *built_in = evaluator_find(job.task->eval_kind);
    (built_in ? built_in : &evaluator_handler)->run(&job);
    fiber_pop_deadline();
    if (job.result.outcome != OUTCOME_OK || job.result.verdict.reward != 1)
        give_up(json, job.result.detail);
    verdict_finish(&job.result.verdict);
    task_destroy(job.task);
}

static double microseconds_each(const char *json)
{
    const int64_t began_us = clock_us();
    for (size_t i = 0; i < count; i++)
        evaluate(json);
    return (double)(clock_us() - began_us) / (double)count;
}

static size_t running;
static struct fiber *waiting;

static void evaluate_in_fiber(void *arg) { evaluate(arg); }

static void fiber_ended(void *arg)
{
    (void)arg;
    if (--running == 0)
        fiber_wake(waiting);
}

static double microseconds_together(const char *json)
{
    const int64_t began_us = clock_us();
    waiting = fiber_current();
    running = together;
    for (size_t i = 0; i < together; i++)
        if (!fiber_start(loop, evaluate_in_fiber, fiber_ended, (void *)(uintptr_t)json))
            give_up("fibers", "out of memory");
    while (running > 0)
        await_wake(-1);
    return (double)(clock_us() - began_us) / (double)together;
}

static void measure(void *arg)
{
    (void)arg;
    for (int64_t end_ms = clock_ms() + WAIT_MS; !*handlers_offers(context.handlers);) {
        await_sleep(1);
        if (clock_ms() > end_ms)
            give_up("the handler", "it is not ready");
    }
    evaluate(handler_task);
    const double built_in = microseconds_each(builtin_task), handlers = microseconds_each(handler_task);
    printf("%.1f evaluation built in, one at a time, us\n", built_in);
    printf("%.1f evaluation by a handler, one at a time, us\n", handlers);
    printf("%.1f a handler's call costs more, us\n", handlers - built_in);
    printf("%.1f evaluation built in, %zu at once, us each\n", microseconds_together(builtin_task), together);
    printf("%.1f evaluation by a handler, %zu in flight in one process, us each\n", microseconds_together(handler_task),
           together);
    fflush(stdout);
    loop_stop(loop);
}

int main(int argc, char **argv)
{
    char text[512];
    struct fail fail = {0};
    if (argc > 1 && strcmp(argv[1], "as-handler") == 0)
        return be_handler();
    count = argc > 1 ? (size_t)atol(argv[1]) : count;
    together = argc > 2 ? (size_t)atol(argv[2]) : together;
    snprintf(text, sizeof(text), "bench=exec %s as-handler", argv[0]);
    const char *const texts[] = {text};
    loop = loop_create();
    const struct handlers_plan plan = {
        .stage = STAGE_EVAL, .texts = texts, .count = 1, .processes = 1, .scratch = "/tmp"};
    context = (struct job_context){.loop = loop, .handlers = loop ? handlers_create(loop, &plan, &fail) : NULL};
    if (!context.handlers || !fiber_start(loop, measure, NULL, NULL))
        give_up("handlers", fail.text);
    loop_run(loop);
    handlers_destroy(&context.handlers);
    loop_destroy(&loop);
    return 0;
}
