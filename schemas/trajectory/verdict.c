#include "schemas/trajectory/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "schemas/trajectory/metric.h"
#include "schemas/trajectory/trajectory_wire.h"

static const char agents_sandbox[] = "agent";

static const char *const status_words[TEST_STATUS_COUNT] = {"passed", "failed", "skipped", "error"};

const char *test_status_wire(enum test_status status) { return status_words[status]; }

bool test_status_parse(struct slice wire, enum test_status *ret)
{
    for (unsigned i = 0; i < TEST_STATUS_COUNT; i++)
        if (slice_is(wire, status_words[i])) {
            *ret = (enum test_status)i;
            return true;
        }
    return false;
}

static void test_finish(struct verdict_test *test)
{
    free(test->name);
    free(test->message);
}

void verdict_finish(struct verdict *verdict)
{
    for (size_t i = 0; verdict->tests && i < verdict->tests->list_count; i++)
        test_finish(&verdict->tests->list[i]);
    if (verdict->tests)
        free(verdict->tests->list);
    free(verdict->tests);
    free(verdict->sandbox);
    free(verdict->patch);
    free(verdict->why);
    free(verdict->parts);
    free(verdict->metrics);
    *verdict = (struct verdict){0};
}

/* ---- what is refused ------------------------------------------------------------------ */

static bool has_part(const struct verdict *verdict, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(verdict->parts[i].name, name) == 0)
            return true;
    return false;
}

static bool check_part(const struct verdict *verdict, size_t i, const struct verdict_part *part, struct refusal *no)
{
    static const char list[] = "parts";
    if (!metric_name_check(list, i, part->name, sizeof(part->name) - 1, no) ||
        !metric_number_check(list, i, "value", part->value, no) ||
        !metric_number_check(list, i, "weight", part->weight, no))
        return false;
    return !has_part(verdict, i, part->name) ||
           metric_refuse(no, list, i, "name", REFUSAL_DUPLICATE_FIELD, "is given twice");
}

static bool check_seconds(size_t i, struct record_seconds seconds, struct refusal *no)
{
    return !seconds.is_known || (isfinite(seconds.value) && seconds.value >= 0) ||
           metric_refuse(no, "tests.list", i, "seconds", REFUSAL_NOT_FINITE, "is not a finite number from 0");
}

static bool check_test(size_t i, const struct verdict_test *test, struct refusal *no)
{
    enum test_status status;
    static const char list[] = "tests.list";
    if (!metric_name_check(list, i, test->name, VERDICT_TEST_NAME_MAX, no))
        return false;
    if (!test_status_parse(slice_of(test->status, strnlen(test->status, sizeof(test->status))), &status))
        return metric_refuse(no, list, i, "status", REFUSAL_WRONG_TYPE, "is not passed, failed, skipped or error");
    if (test->message && strlen(test->message) > VERDICT_MESSAGE_MAX)
        return metric_refuse(no, list, i, "message", REFUSAL_TOO_LARGE, "is too long");
    if (test->message && !utf8_is_valid(slice_from_str(test->message)))
        return metric_refuse(no, list, i, "message", REFUSAL_NOT_UTF8, "is not UTF-8 text");
    return check_seconds(i, test->seconds, no);
}

static bool check_tests(const struct verdict_tests *tests, struct refusal *no)
{
    static const char *const keys[TEST_STATUS_COUNT] = {"tests.passed", "tests.failed", "tests.skipped", "tests.error"};
    const uint64_t told[TEST_STATUS_COUNT] = {tests->passed, tests->failed, tests->skipped, tests->error};
    uint64_t listed[TEST_STATUS_COUNT] = {0};
    for (size_t i = 0; i < tests->list_count; i++) {
        enum test_status status = TEST_ERROR;
        if (!check_test(i, &tests->list[i], no))
            return false;
        test_status_parse(slice_from_str(tests->list[i].status), &status);
        listed[status]++;
    }
    for (unsigned i = 0; i < TEST_STATUS_COUNT; i++)
        if (told[i] < listed[i])
            return refuse(no, REFUSAL_TOO_SMALL, keys[i], "verdict: %s is less than the list has", keys[i]);
    return true;
}

static bool check(const struct verdict *verdict, struct refusal *no)
{
    for (size_t i = 0; i < verdict->part_count; i++)
        if (!check_part(verdict, i, &verdict->parts[i], no))
            return false;
    for (size_t i = 0; i < verdict->metric_count; i++)
        if (!metric_check(verdict->metrics, i, no))
            return false;
    if (verdict->sandbox && strcmp(verdict->sandbox, agents_sandbox) != 0)
        return refuse(no, REFUSAL_WRONG_TYPE, "sandbox", "verdict: sandbox is not \"%s\"", agents_sandbox);
    if (verdict->patch && strlen(verdict->patch) > VERDICT_PATCH_MAX)
        return refuse(no, REFUSAL_TOO_LARGE, "patch", "verdict: patch is longer than %d bytes", VERDICT_PATCH_MAX);
    if (verdict->patch && !utf8_is_valid(slice_from_str(verdict->patch)))
        return refuse(no, REFUSAL_NOT_UTF8, "patch", "verdict: patch is not UTF-8 text");
    return !verdict->tests || check_tests(verdict->tests, no);
}

/* ---- making ----------------------------------------------------------------------------- */

static bool refuse_room(struct refusal *no, const char *list, size_t count, size_t max)
{
    return count < max ? refuse(no, REFUSAL_TOO_LARGE, list, "verdict: no memory for another of %s", list)
                       : refuse(no, REFUSAL_TOO_LARGE, list, "verdict: more than %zu %s", max, list);
}

/* `name` into the room of `size`; too long a one keeps enough to be refused for it. */
static bool take_name(const char *list, size_t i, const char *name, size_t size, char *room, struct refusal *no)
{
    if (!metric_name_check(list, i, name, size - 1, no))
        return false;
    strcpy(room, name);
    return true;
}

bool verdict_add_part(struct verdict *verdict, const char *name, double value, double weight, struct refusal *no)
{
    struct verdict_part part = {.value = value, .weight = weight}, *added;
    size_t i = verdict->part_count;
    if (!take_name("parts", i, name, sizeof(part.name), part.name, no) || !check_part(verdict, i, &part, no))
        return false;
    added = record_list_add(&verdict->parts, &verdict->part_count, &verdict->part_capacity, sizeof(part),
                            VERDICT_PARTS_MAX);
    if (!added)
        return refuse_room(no, "parts", i, VERDICT_PARTS_MAX);
    *added = part;
    return true;
}

bool verdict_add_metric(struct verdict *verdict, const char *name, double value, struct refusal *no)
{
    struct record_metric metric = {.value = value}, *added;
    size_t i = verdict->metric_count;
    if (!take_name("metrics", i, name, sizeof(metric.name), metric.name, no))
        return false;
    added = record_list_add(&verdict->metrics, &verdict->metric_count, &verdict->metric_capacity, sizeof(metric),
                            VERDICT_METRICS_MAX);
    if (!added)
        return refuse_room(no, "metrics", i, VERDICT_METRICS_MAX);
    *added = metric;
    if (!metric_check(verdict->metrics, i, no))
        verdict->metric_count--;
    return verdict->metric_count > i;
}

static bool put_noted(struct record_noted *noted, const char *name, double value, struct refusal *no)
{
    struct verdict view = {
        .metrics = noted->metrics, .metric_count = noted->metric_count, .metric_capacity = noted->metric_capacity};
    for (size_t i = 0; i < noted->metric_count; i++)
        if (strcmp(noted->metrics[i].name, name) == 0) {
            const bool good = metric_number_check("metrics", i, "value", value, no);
            noted->metrics[i].value = good ? value : noted->metrics[i].value;
            return good;
        }
    const bool good = verdict_add_metric(&view, name, value, no);
    noted->metrics = view.metrics;
    noted->metric_count = view.metric_count;
    noted->metric_capacity = view.metric_capacity;
    return good;
}

bool record_note_metric(struct record *record, const char *name, double value, struct refusal *no)
{
    if (!record->noted && !(record->noted = calloc(1, sizeof(*record->noted))))
        return refuse(no, REFUSAL_TOO_LARGE, "metrics", "out of memory for a metric");
    return put_noted(record->noted, name, value, no);
}

static char *repaired_and_cut(const char *text, size_t max)
{
    static const char mark[] = "...";
    struct buffer out = {0};
    utf8_append_repaired(&out, slice_from_str(text));
    char *whole = buffer_take_str(&out);
    if (whole && strlen(whole) > max)
        strcpy(whole + text_cut(whole, max - strlen(mark)).len, mark);
    return whole;
}

/* Of a test's name, which is whatever its runner prints. */
static char *plain_name(const char *name)
{
    char *plain = repaired_and_cut(name, VERDICT_TEST_NAME_MAX);
    for (char *at = plain; at && *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return plain;
}

static struct verdict_tests *get_tests(struct verdict *verdict)
{
    if (!verdict->tests)
        verdict->tests = calloc(1, sizeof(*verdict->tests));
    return verdict->tests;
}

static uint64_t *count_of(struct verdict_tests *tests, enum test_status status)
{
    uint64_t *const counts[TEST_STATUS_COUNT] = {&tests->passed, &tests->failed, &tests->skipped, &tests->error};
    return counts[status];
}

/* Takes the test, or counts it only and frees it. */
static bool list_test(struct verdict_tests *tests, struct verdict_test *test, enum test_status status)
{
    size_t bytes = strlen(test->name) + (test->message ? strlen(test->message) : 0);
    bool fits = tests->list_count < VERDICT_TESTS_MAX && bytes <= VERDICT_TEXT_MAX - tests->text_bytes;
    struct verdict_test *added = fits ? record_list_add(&tests->list, &tests->list_count, &tests->list_capacity,
                                                        sizeof(*test), VERDICT_TESTS_MAX)
                                      : NULL;
    if (!added) {
        test_finish(test);
        *count_of(tests, status) += !fits;
        return !fits;
    }
    *added = *test;
    tests->text_bytes += bytes;
    ++*count_of(tests, status);
    return true;
}

bool verdict_add_test(struct verdict *verdict, const char *name, enum test_status status, const char *message,
                      const double *seconds, struct refusal *no)
{
    size_t i = verdict->tests ? verdict->tests->list_count : 0;
    AUTO_FREE char *whole = plain_name(name);
    if (!whole || !get_tests(verdict))
        return refuse_room(no, "tests.list", i, VERDICT_TESTS_MAX + 1);
    struct verdict_test test = {.name = whole, .seconds = {.is_known = seconds, .value = seconds ? *seconds : 0}};
    strcpy(test.status, test_status_wire(status));
    if (!check_test(i, &test, no))
        return false;
    test.message = message ? repaired_and_cut(message, VERDICT_MESSAGE_MAX) : NULL;
    if (message && !test.message)
        return refuse_room(no, "tests.list", i, VERDICT_TESTS_MAX + 1);
    take_ptr(&whole);
    return list_test(verdict->tests, &test, status) || refuse_room(no, "tests.list", i, VERDICT_TESTS_MAX + 1);
}

bool verdict_set_reward(struct verdict *verdict, double reward, struct refusal *no)
{
    if (!isfinite(reward))
        return refuse(no, REFUSAL_NOT_FINITE, "reward", "verdict: the reward is not a finite number");
    verdict->has_reward = true;
    verdict->reward = reward;
    return true;
}

bool verdict_sum(struct verdict *verdict, struct refusal *no)
{
    double sum = 0;
    if (verdict->part_count == 0)
        return refuse(no, REFUSAL_MISSING_FIELD, "parts", "verdict: there are no parts to sum up");
    for (size_t i = 0; i < verdict->part_count; i++)
        sum += verdict->parts[i].weight * verdict->parts[i].value;
    return verdict_set_reward(verdict, sum, no);
}

bool verdict_pass_fraction(const struct verdict *verdict, double *ret)
{
    const struct verdict_tests *tests = verdict->tests;
    if (!tests || tests->passed + tests->failed + tests->error == 0)
        return false;
    *ret = (double)tests->passed / (double)(tests->passed + tests->failed + tests->error);
    return true;
}

bool verdict_set_agents_sandbox(struct verdict *verdict)
{
    if (!verdict->sandbox)
        verdict->sandbox = strdup(agents_sandbox);
    return verdict->sandbox != NULL;
}

bool verdict_set_patch(struct verdict *verdict, struct slice patch)
{
    if (patch.len > VERDICT_PATCH_MAX || !utf8_is_valid(patch) || (patch.len && memchr(patch.data, 0, patch.len)))
        return true;
    char *copy = strndup(patch.len ? (const char *)patch.data : "", patch.len);
    if (copy) {
        free(verdict->patch);
        verdict->patch = copy;
    }
    return copy != NULL;
}

void verdict_vsay(struct verdict *verdict, const char *format, va_list args)
{
    char why[VERDICT_WHY_BYTES];
    vsnprintf(why, sizeof(why), format, args);
    text_sanitize(why);
    free(verdict->why); /* which may be among the arguments */
    verdict->why = why[0] ? strdup(why) : NULL;
}

void verdict_say(struct verdict *verdict, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    verdict_vsay(verdict, format, args);
    va_end(args);
}

const char *verdict_why(const struct verdict *verdict) { return verdict->why ? verdict->why : ""; }

/* ---- bytes ---------------------------------------------------------------------------------- */

bool verdict_has_details(const struct verdict *verdict)
{
    return verdict->part_count > 0 || verdict->metric_count > 0 || verdict->tests || verdict->sandbox || verdict->patch;
}

bool verdict_encode(const struct verdict *verdict, struct buffer *out, struct refusal *no)
{
    size_t start = out->len;
    if (!check(verdict, no))
        return false;
    if (!record_map_encode(out, MAP_verdict, verdict)) {
        out->len = start;
        return refuse(no, REFUSAL_TOO_LARGE, "", "verdict: out of memory");
    }
    if (out->len - start <= VERDICT_BYTES_MAX)
        return true;
    out->len = start;
    return refuse(no, REFUSAL_TOO_LARGE, "", "verdict: more than %d bytes", VERDICT_BYTES_MAX);
}

bool verdict_decode(struct slice bytes, struct verdict *ret, struct refusal *no)
{
    static const char what[] = "verdict";
    *ret = (struct verdict){0};
    if (bytes.len > VERDICT_BYTES_MAX)
        return refuse(no, REFUSAL_TOO_LARGE, "", "%s: it is longer than a verdict may be", what);
    return record_map_decode(bytes, MAP_verdict, RECORD_VERSION, what, ret, no) && check(ret, no);
}
