#include "client/lib/stream/verdict_view.h"

#include <stdlib.h>

void verdict_view_finish(struct verdict_view *view)
{
    free(view->parts);
    free(view->metrics);
    free(view->list);
    verdict_finish(&view->verdict);
    *view = (struct verdict_view){0};
}

static bool make_room(struct verdict_view *view)
{
    const struct verdict *verdict = &view->verdict;
    view->parts = calloc(verdict->part_count + 1, sizeof(*view->parts));
    view->metrics = calloc(verdict->metric_count + 1, sizeof(*view->metrics));
    view->list = calloc((verdict->tests ? verdict->tests->list_count : 0) + 1, sizeof(*view->list));
    return view->parts && view->metrics && view->list;
}

static void fill_tests(struct verdict_view *view)
{
    const struct verdict_tests *tests = view->verdict.tests;
    double fraction = -1;
    verdict_pass_fraction(&view->verdict, &fraction);
    for (size_t i = 0; i < tests->list_count; i++) {
        const struct verdict_test *test = &tests->list[i];
        view->list[i] = (struct sluice_test){.name = test->name,
                                             .status = test->status,
                                             .message = test->message,
                                             .seconds = test->seconds.is_known ? test->seconds.value : -1};
    }
    view->tests = (struct sluice_tests){.passed = tests->passed,
                                        .failed = tests->failed,
                                        .skipped = tests->skipped,
                                        .error = tests->error,
                                        .pass_fraction = fraction,
                                        .list = view->list,
                                        .list_count = tests->list_count};
}

bool verdict_view_read(struct verdict_view *view, struct slice bytes, struct refusal *no)
{
    if (!verdict_decode(bytes, &view->verdict, no))
        return false;
    if (!make_room(view))
        return refuse(no, REFUSAL_MALFORMED, "verdict", "out of memory for a trajectory's verdict");
    for (size_t i = 0; i < view->verdict.part_count; i++) {
        const struct verdict_part *part = &view->verdict.parts[i];
        view->parts[i] = (struct sluice_part){part->name, part->value, part->weight};
    }
    for (size_t i = 0; i < view->verdict.metric_count; i++)
        view->metrics[i] = (struct sluice_metric){view->verdict.metrics[i].name, view->verdict.metrics[i].value};
    if (view->verdict.tests)
        fill_tests(view);
    return true;
}

void verdict_view_show(const struct verdict_view *view, struct sluice_trajectory *out)
{
    out->parts = view->parts;
    out->part_count = view->verdict.part_count;
    out->metrics = view->metrics;
    out->metric_count = view->verdict.metric_count;
    out->tests = view->verdict.tests ? &view->tests : NULL;
    out->eval_sandbox = view->verdict.sandbox;
    out->patch = view->verdict.patch;
}
