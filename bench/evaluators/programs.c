/*
 * Programs judged on tests, as an eval worker does it: from the task's JSON to the verdict, in a sandbox each.
 *
 *   bench_programs DIRECTORY [TESTS [EVALUATIONS]]     prints "VALUE WHAT" lines; 100 and 8 if not given
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/evaluators/evaluators.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/stages/kinds.h"

static const struct row {
    const char *what, *program, *form; /* form: of eval, but for its tests */
    size_t together, share;            /* evaluations at a time; of the tests, one in so many */
} rows[] = {
    {"stdin, one evaluation at a time", "print(sum(map(int, input().split())))", "", 1, 1},
    {"stdin, two at a time", "print(sum(map(int, input().split())))", "", 2, 1},
    {"stdin, eight at a time", "print(sum(map(int, input().split())))", "", 8, 1},
    {"stdin, checker floats, two at a time", "print(sum(map(float, input().split())))", ",\"checker\":\"floats\"", 2,
     1},
    {"stdin, a checker program in Python, two at a time", "print(sum(map(int, input().split())))",
     ",\"checker\":\"program\",\"checker_program\":\"/eval/c.py\",\"files\":{\"/eval/c.py\":\"import sys\\ni, o, a = "
     "(open(p).read() for "
     "p in sys.argv[1:])\\nsys.exit(int(o.split() != a.split()))\\n\"}",
     2, 4},
    {"stdin, a checker program in bash, two at a time", "print(sum(map(int, input().split())))",
     ",\"checker\":\"program\",\"checker_program\":\"/eval/c\",\"files\":[{\"path\":\"/eval/"
     "c\",\"mode\":\"0755\",\"text\":\"#!/bin/bash\\n"
     "[[ $(<$2) == $(<$3) ]]\\n\"}]",
     2, 4},
};

static const struct image_list no_images;
static struct job_context context;
static struct loop *loop;
static size_t test_count = 100, evaluation_count = 8;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_programs: %s: %s\n", what, why);
    exit(1);
}

/* The task of a row, with so many tests; the caller frees it. */
static char *task_of(const struct row *row, size_t tests)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json,
                  "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"code\"%s,"
                  "\"tests\":{\"inputs\":[",
                  row->form);
    for (size_t i = 0; i < tests; i++)
        buffer_printf(&json, "%s\"%zu %zu\"", i ? "," : "", i, 2 * i);
    buffer_append_str(&json, "],\"outputs\":[");
    for (size_t i = 0; i < tests; i++)
        buffer_printf(&json, "%s\"%zu\"", i ? "," : "", 3 * i);
    buffer_append_str(&json, "]}}}");
    return buffer_take_str(&json);
}

struct round {
    const struct row *row;
    const char *json;
    size_t left, running;
    struct fiber *waiting;
};

static void evaluate(const struct round *round)
{
    char answer[512];
    struct refusal no = {0};
    struct job job = {.context = &context, .task = task_parse(slice_from_str(round->json), &no)};
    if (!job.task)
        give_up(no.field, no.text);
    snprintf(answer, sizeof(answer), "```python\n%s\n```\n", round->row->program);
    job.start.task = slice_from_str(round->json);
    job.start.answer = slice_from_str(answer);
    job.start.has_answer = true;
    job_begin(&job, STAGE_EVAL);
    evaluator_code.run(&job);
    fiber_pop_deadline();
    if (job.result.outcome != OUTCOME_OK || job.result.verdict.reward != 1)
        give_up(round->row->what, job.result.detail);
    verdict_finish(&job.result.verdict);
    task_destroy(job.task);
}

static void work(void *arg)
{
    struct round *round = arg;
    while (round->left > 0) {
        round->left--;
        evaluate(round);
    }
}

static void work_ended(void *arg)
{
    struct round *round = arg;
    if (--round->running == 0)
        fiber_wake(round->waiting);
}

static void measure_row(const struct row *row)
{
    const size_t tests = test_count / row->share ? test_count / row->share : 1;
    AUTO_FREE char *json = task_of(row, tests);
    struct round round = {row, json, 1, row->together, fiber_current()};
    evaluate(&round); /* the next sandbox is warm from here on */
    round.left = evaluation_count;
    const int64_t began_us = clock_us();
    for (size_t i = 0; i < row->together; i++)
        if (!fiber_start(loop, work, work_ended, &round))
            give_up("fibers", "out of memory");
    while (round.running > 0)
        await_wake(-1);
    const double seconds = (double)(clock_us() - began_us) / 1e6;
    printf("%.1f tests/s: %s\n", (double)(tests * evaluation_count) / seconds, row->what);
    fflush(stdout);
}

static void measure(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        measure_row(&rows[i]);
    loop_stop(loop);
}

static void make_dir(char *path, size_t size, const char *in, const char *name)
{
    snprintf(path, size, "%s/%s", in, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        give_up(path, strerror(errno));
}

int main(int argc, char **argv)
{
    char scratch[512], store[512], cache[512];
    struct fail fail = {0};
    if (argc < 2)
        give_up("usage", "bench_programs DIRECTORY [TESTS [EVALUATIONS]]");
    test_count = argc > 2 ? (size_t)atol(argv[2]) : test_count;
    evaluation_count = argc > 3 ? (size_t)atol(argv[3]) : evaluation_count;
    make_dir(scratch, sizeof(scratch), argv[1], "mount");
    make_dir(store, sizeof(store), argv[1], "store");
    make_dir(cache, sizeof(cache), argv[1], "cache");
    struct spawner *spawner = spawner_start(scratch, &fail);
    loop = loop_create();
    if (!spawner || !loop || !spawner_attach(spawner, loop))
        give_up("spawner", fail.text);
    context = (struct job_context){.loop = loop,
                                   .spawner = spawner,
                                   .images = images_create(loop, cache, 0, &no_images),
                                   .layers = {store, cache}};
    if (!context.images || !fiber_start(loop, measure, NULL, NULL))
        give_up("fibers", "out of memory");
    loop_run(loop);
    images_destroy(&context.images);
    spawner_stop(&spawner);
    loop_destroy(&loop);
    return 0;
}
