#include "workers/grading/grading_swe.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/sanitize.h"
#include "schemas/task/task.h"
#include "workers/evaluators/swe/swe_verdict.h"

enum { PATCH_MAX = 16 << 20, LOG_MAX = 256 << 20, TASKS_MAX = 64 << 20, TESTS_SHOWN = 8 };

static const char begin_mark[] = ">>>>> Start Test Output\n", end_mark[] = "\n>>>>> End Test Output\n";

bool grading_swe_read(const struct grading_options *options, const char **ret_why)
{
    *ret_why = NULL;
    if (!options->task || !options->eval_log)
        *ret_why = "swe wants --task and --eval-log; sluice grade --task FILE --files DIR runs the tests itself";
    else if (options->text || options->answer.count || options->rows || options->option.count)
        *ret_why = "swe judges a log: leave --answer, --text, --option and --rows out";
    return !*ret_why;
}

/* ---- files -------------------------------------------------------------------------------------------- */

static bool refuse_file(const char *path, const char *why)
{
    sanitize_print(stderr, "sluice-grade: %s: %s\n", path, why);
    return false;
}

static bool read_all(int file, const char *path, size_t max, struct buffer *ret)
{
    uint8_t chunk[65536];
    for (ssize_t got; (got = read(file, chunk, sizeof(chunk))) != 0;) {
        if (got < 0)
            return refuse_file(path, strerror(errno));
        if (ret->len + (size_t)got > max)
            return refuse_file(path, "it is too large");
        if (!buffer_append(ret, chunk, (size_t)got))
            return refuse_file(path, "out of memory");
    }
    return true;
}

static bool read_file(const char *path, size_t max, struct buffer *ret)
{
    AUTO_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    return file < 0 ? refuse_file(path, strerror(errno)) : read_all(file, path, max, ret);
}

/* ---- the task ------------------------------------------------------------------------------------------- */

static bool is_wanted(const json_t *task, const char *id)
{
    const char *name = json_string_value(json_object_get(task, "task"));
    return !id || (name && strcmp(name, id) == 0);
}

/* One a line, or one over several; of several the one that --id names. The caller's; NULL: it was said why. */
static json_t *find_task(const struct grading_options *options, const char *text, size_t len)
{
    json_error_t error;
    json_t *found = NULL;
    size_t count = 0;
    for (size_t at = 0; at < len;) {
        at += strspn(text + at, " \t\r\n");
        json_t *task = at < len ? json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error)
                                : NULL;
        if (!task && at < len) {
            refuse_file(options->task, error.text);
            json_decref(found);
            return NULL;
        }
        count += task && is_wanted(task, options->id);
        if (task && !found && is_wanted(task, options->id))
            found = json_incref(task);
        json_decref(task);
        at += task ? (size_t)error.position : 0;
    }
    if (count == 1)
        return found;
    refuse_file(options->task, count         ? "it has several tasks: --id NAME says whose log this is"
                               : options->id ? "it has no task of the name that --id says"
                                             : "there is no task in it");
    json_decref(found);
    return NULL;
}

static struct task *read_task(const struct grading_options *options)
{
    struct refusal no = {0};
    AUTO_BUFFER text = {0};
    if (!read_file(options->task, TASKS_MAX, &text) || !buffer_append(&text, "", 1))
        return NULL;
    json_t *found = find_task(options, (const char *)text.data, text.len - 1);
    AUTO_FREE char *json = found ? json_dumps(found, JSON_COMPACT) : NULL;
    json_decref(found);
    struct task *task = json ? task_parse(slice_from_str(json), &no) : NULL;
    if (json && !task)
        sanitize_print(stderr, "sluice-grade: %s: %s\n", options->task, no.text);
    if (task && strcmp(task->eval_kind, "swe") != 0) {
        sanitize_print(stderr, "sluice-grade: %s: the evaluator of %s is %s, not swe\n", options->task, task->id,
                       task->eval_kind);
        task_destroy(task);
        return NULL;
    }
    return task;
}

/* ---- the patch ------------------------------------------------------------------------------------------- */

static void measure(struct verdict *verdict, const char *name, size_t value)
{
    verdict_add_metric(verdict, name, (double)value, NULL);
}

static bool end_unresolved(struct verdict *verdict, const char *why)
{
    verdict_set_reward(verdict, 0, NULL);
    verdict_say(verdict, "not resolved: %s", why);
    return false;
}

/* Whether anything of it counts; else the verdict is that. */
static bool keep_patch(const struct task_swe *swe, struct slice patch, struct verdict *verdict)
{
    AUTO_PATHS tests = {0};
    struct patch_kept kept = {0};
    bool goes_on = false;
    if (swe->test_patch)
        patch_list_files(slice_from_str(swe->test_patch), &tests);
    if (!patch_keep(patch, swe, &tests, &kept)) {
        end_unresolved(verdict, "the patch cannot be read");
    } else {
        measure(verdict, "patch_bytes", kept.patch.len);
        measure(verdict, "patch_files", kept.files.count);
        measure(verdict, "changed_test_files", kept.tests.count);
        measure(verdict, "changed_protected_files", kept.is_protected.count);
        goes_on = kept.patch.len > 0 ||
                  end_unresolved(verdict, kept.tests.count + kept.is_protected.count > 0
                                              ? "it changes nothing but files of the tests or protected ones"
                                              : "the patch is empty");
    }
    patch_kept_finish(&kept);
    return goes_on;
}

/* ---- the log ---------------------------------------------------------------------------------------------- */

static bool has(struct slice text, const char *mark)
{
    return text.len > 0 && memmem(text.data, text.len, mark, strlen(mark)) != NULL;
}

/* What SWE-bench's harness wrote into it when a run came to nothing; NULL: it has not. */
static const char *find_ending(struct slice log)
{
    static const char *const endings[] = {">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored",
                                          ">>>>> Tests Timed Out"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (has(log, endings[i]))
            return endings[i];
    return NULL;
}

/* Whether its tests count; else the verdict is that. */
static bool check_ending(struct slice log, struct verdict *verdict)
{
    char why[64];
    const char *ending = find_ending(log);
    if (!ending)
        return true;
    snprintf(why, sizeof(why), "the log says '%s'", ending);
    return end_unresolved(verdict, why);
}

/* With marks around it, where it has none. */
static bool mark_whole(struct buffer *log)
{
    AUTO_BUFFER marked = {0};
    const struct slice text = buffer_peek(log);
    if (has(text, ">>>>> Start Test Output") || has(text, ">>>>> End Test Output"))
        return true;
    buffer_append_str(&marked, begin_mark);
    buffer_append(&marked, text.data, text.len);
    buffer_append_str(&marked, end_mark);
    const struct buffer unmarked = *log;
    *log = marked;
    marked = unmarked;
    return !log->failed;
}

static bool judge(const struct grading_options *options, const struct task_swe *swe, struct verdict *verdict)
{
    struct swe_run run = {.status = 0};
    AUTO_BUFFER log = {0}, patch = {0};
    if (!read_file(options->eval_log, LOG_MAX, &log) || !mark_whole(&log) ||
        (options->patch && !read_file(options->patch, PATCH_MAX, &patch)))
        return false;
    if (getrandom(&run.seed, sizeof(run.seed), 0) != sizeof(run.seed))
        return refuse_file(options->eval_log, "no random numbers");
    run.log = buffer_peek(&log);
    if ((!options->patch || keep_patch(swe, buffer_peek(&patch), verdict)) && check_ending(run.log, verdict))
        swe_judge(swe, &run, verdict);
    return true;
}

/* ---- what is printed --------------------------------------------------------------------------------------- */

static bool is_bad(const struct verdict_test *test)
{
    return strcmp(test->status, "failed") == 0 || strcmp(test->status, "error") == 0;
}

static void print_tests(const struct verdict_tests *tests, FILE *out)
{
    size_t bad = 0;
    fprintf(out, "tests    %llu passed, %llu failed, %llu with errors, %llu skipped", (unsigned long long)tests->passed,
            (unsigned long long)tests->failed, (unsigned long long)tests->error, (unsigned long long)tests->skipped);
    for (size_t i = 0; i < tests->list_count; i++)
        if (is_bad(&tests->list[i]) && bad++ < TESTS_SHOWN)
            sanitize_print(out, "%s%s", bad == 1 ? "; not passed: " : ", ", tests->list[i].name);
    if (bad > TESTS_SHOWN)
        fprintf(out, " and %zu more", bad - TESTS_SHOWN);
    fputs("\n", out);
}

static void print_text(const struct task *task, const struct verdict *verdict, FILE *out)
{
    sanitize_print(out, "verdict  %s: ", task->id);
    if (verdict->has_reward)
        fprintf(out, "reward %.6g\n", verdict->reward);
    else
        fputs("no reward, outcome task\n", out);
    for (size_t i = 0; i < verdict->metric_count; i++)
        fprintf(out, "%s%s %.6g", i ? ", " : "metrics  ", verdict->metrics[i].name, verdict->metrics[i].value);
    fputs(verdict->metric_count ? "\n" : "", out);
    if (verdict->tests)
        print_tests(verdict->tests, out);
    sanitize_print(out, "why      %s\n", verdict_why(verdict));
}

static json_t *tests_json(const struct verdict_tests *tests)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tests->list_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s*}", "name", tests->list[i].name, "status",
                                              tests->list[i].status, "message", tests->list[i].message));
    return json_pack("{s:I, s:I, s:I, s:I, s:o}", "passed", (json_int_t)tests->passed, "failed",
                     (json_int_t)tests->failed, "skipped", (json_int_t)tests->skipped, "error",
                     (json_int_t)tests->error, "list", list);
}

/* As `sluice grade --json` has it. */
static bool print_json(const struct task *task, const struct verdict *verdict, FILE *out)
{
    json_t *metrics = json_array();
    json_t *reward = verdict->has_reward ? json_real(verdict->reward) : json_null();
    for (size_t i = 0; i < verdict->metric_count; i++)
        json_array_append_new(
            metrics, json_pack("{s:s, s:f}", "name", verdict->metrics[i].name, "value", verdict->metrics[i].value));
    json_t *line = json_pack("{s:s, s:s, s:o, s:[], s:o, s:o*, s:s}", "task", task->id, "outcome",
                             verdict->has_reward ? "ok" : "task", "reward", reward, "parts", "metrics", metrics,
                             "tests", verdict->tests ? tests_json(verdict->tests) : NULL, "why", verdict_why(verdict));
    const bool good = line && json_dumpf(line, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF;
    json_decref(line);
    return good;
}

enum grading_status grading_swe(const struct grading_options *options, FILE *out)
{
    AUTO_VERDICT verdict = {0};
    struct task *task = read_task(options);
    bool good = task && judge(options, &task->swe, &verdict);
    if (good && options->json)
        good = print_json(task, &verdict, out);
    else if (good)
        print_text(task, &verdict, out);
    task_destroy(task);
    return !good || !verdict.has_reward ? GRADING_UNREAD : verdict.reward >= 1 ? GRADING_RIGHT : GRADING_WRONG;
}
