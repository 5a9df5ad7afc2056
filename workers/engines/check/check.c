#include "workers/engines/check/check.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/check/checks.h"
#include "workers/engines/engines.h"
#include "common/loop/loop_now.h"
#include "common/base/text.h"

enum { ENGINE_CHECK_TIMEOUT_MS = 120000 }; /* one check; engines that warm up take long over their first */

static const struct {
    const char *word, *doc;
} words[ENGINE_CHECK_COUNT] = {
#define ENGINE_CHECK(name, doc) [ENGINE_CHECK_##name] = {#name, doc},
#include "workers/engines/check/checks.def"
#undef ENGINE_CHECK
};

const char *check_word(enum check_name name) { return words[name].word; }

static const char *verdict_word(enum check_verdict verdict)
{
    static const char *const verdicts[] = {"pass", "fail", "not offered"};
    return verdicts[verdict];
}

/* ---- saying ------------------------------------------------------------------------------ */

struct report {
    struct check_run run;
    bool is_json;
    FILE *out;
    json_t *list;
    enum check_status status;
};

static void tell(struct report *report, enum check_name name, struct check_result *result)
{
    text_sanitize(result->text);
    const char *verdict = verdict_word(result->verdict);
    if (report->is_json)
        json_array_append_new(report->list, json_pack("{s:s,s:s,s:s,s:s}", "check", check_word(name), "verdict",
                                                      verdict, "text", result->text, "doc", words[name].doc));
    else
        fprintf(report->out, "%-11s  %-9s  %s\n", verdict, check_word(name), result->text);
    fflush(report->out);
}

static void tell_all(struct report *report, const char *url)
{
    AUTO_JSON json_t *json = json_pack("{s:s,s:i,s:O}", "url", url, "status", report->status, "checks", report->list);
    if (report->is_json && json) {
        json_dumpf(json, report->out, JSON_INDENT(1));
        fputc('\n', report->out);
    }
}

/* ---- running ----------------------------------------------------------------------------- */

static void run_all(void *arg)
{
    struct report *report = arg;
    for (int i = 0; i < ENGINE_CHECK_COUNT; i++) {
        struct check_result result = {.verdict = ENGINE_CHECK_FAIL};
        fiber_push_deadline(loop_now_ms() + ENGINE_CHECK_TIMEOUT_MS);
        engine_checks[i](&report->run, &result);
        fiber_pop_deadline();
        tell(report, (enum check_name)i, &result);
        if (result.verdict != ENGINE_CHECK_FAIL)
            continue;
        report->status = i == ENGINE_CHECK_dialect ? ENGINE_CHECK_STATUS_NONE : ENGINE_CHECK_STATUS_FAILED;
        if (i == ENGINE_CHECK_dialect || i == ENGINE_CHECK_template)
            return; /* nothing else would mean anything */
    }
}

static void stop(void *arg)
{
    struct report *report = arg;
    loop_stop(report->run.loop);
}

enum check_status engine_check(const char *url, const struct model_dirs *model_dirs, bool is_json, FILE *out)
{
    const struct http_limits limits = {
        .connections_max = 8, .connect_ms = HTTP_CONNECT_MS, .silence_ms = HTTP_SILENCE_MS};
    struct report report = {.is_json = is_json, .out = out, .list = json_array()};
    struct fail fail = {0};
    report.run.loop = loop_create();
    struct http *http = report.run.loop ? http_create(report.run.loop, &limits, &fail) : NULL;
    struct engines *engines = http ? engines_create(http) : NULL;
    if (engines)
        engines_set_model_dirs(engines, model_dirs);
    report.run.engine = engines ? engines_get_given(engines, url, &fail) : NULL;
    report.status = ENGINE_CHECK_STATUS_WELL;
    if (report.run.engine && fiber_start(report.run.loop, run_all, stop, &report))
        loop_run(report.run.loop);
    else
        report.status = ENGINE_CHECK_STATUS_NONE;
    tell_all(&report, report.run.engine ? engine_base_url(report.run.engine) : "");
    tokens_finish(&report.run.prompt);
    tokens_finish(&report.run.sampled);
    free(report.run.logprobs);
    engines_destroy(&engines);
    http_destroy(&http);
    loop_destroy(&report.run.loop);
    json_decref(report.list);
    return report.status;
}
