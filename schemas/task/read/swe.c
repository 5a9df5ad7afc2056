/* The fields of eval.swe, and agent.hidden. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "schemas/task/read/task_read.h"

enum { TEST_NAME_MAX = 4096, PATTERN_MAX = 4096, PATH_BYTES_MAX = 4096, COMMIT_MIN = 7 };

/* ---- lists ----------------------------------------------------------------------------------- */

bool task_read_fail_to_pass(const struct task_place *place, struct task_value value)
{
    struct task_swe *swe = &((struct task *)place->base)->swe;
    return place_read_texts(place, value, TEST_NAME_MAX, &swe->fail_to_pass, &swe->fail_to_pass_count);
}

bool task_read_pass_to_pass(const struct task_place *place, struct task_value value)
{
    struct task_swe *swe = &((struct task *)place->base)->swe;
    return place_read_texts(place, value, TEST_NAME_MAX, &swe->pass_to_pass, &swe->pass_to_pass_count);
}

bool task_read_protected(const struct task_place *place, struct task_value value)
{
    struct task_swe *swe = &((struct task *)place->base)->swe;
    return place_read_texts(place, value, PATTERN_MAX, &swe->protected, &swe->protected_count);
}

bool task_read_hidden(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    if (!place_read_texts(place, value, PATH_BYTES_MAX, &task->hidden, &task->hidden_count))
        return false;
    for (size_t i = 0; i < task->hidden_count; i++) {
        struct task_place element = place_of_element(place, i);
        const char *path = task->hidden[i];
        if (path[0] != '/' || path[strspn(path, "/.")] == '\0' || path_climbs(path))
            return refuse(place->no, REFUSAL_BAD_TASK, element.shown,
                          "%s must be an absolute path inside the sandbox, without \"..\"", element.shown);
    }
    return true;
}

/* "NAME\tSTATUS" */
static bool keep_expected(const struct task_place *place, const char *name, struct task_value value, const char **ret)
{
    static const char statuses[] = "PASSED|FAILED|SKIPPED|ERROR|XFAIL";
    if (!task_value_is(value, JSON_DOC_STRING))
        return place_wrong_type(place, "an object of names and statuses");
    const char *status = place_text(place, value);
    if (!status)
        return false;
    if (!text_is_one_of(status, statuses))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s: a status must be one of %s", place->shown,
                      statuses);
    if (strlen(name) > TEST_NAME_MAX)
        return refuse(place->no, REFUSAL_TOO_LARGE, place->shown, "%s has a name of %zu bytes; the maximum is %d",
                      place->shown, strlen(name), TEST_NAME_MAX);
    *ret = arena_printf(place->arena, "%s\t%s", name, status);
    return *ret || place_out_of_memory(place);
}

bool task_read_expected_tests(const struct task_place *place, struct task_value value)
{
    struct task_swe *swe = &((struct task *)place->base)->swe;
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return place_wrong_type(place, "an object of names and statuses");
    if (!place_check_bounds(place, (double)task_value_count(value), " elements") ||
        !place_make_list(place, task_value_count(value), sizeof(*swe->expected), &swe->expected))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const char *name = place_text(place, each.name);
        if (!name || !keep_expected(place, name, each.value, &swe->expected[swe->expected_count]))
            return false;
        swe->expected_count++;
    }
    return true;
}

/* ---- together ---------------------------------------------------------------------------------- */

static bool is_commit(const char *text)
{
    const size_t len = strlen(text);
    return strcmp(text, "HEAD") == 0 || (len >= COMMIT_MIN && strspn(text, "0123456789abcdef") == len);
}

/* Whether the two marks stand in it, one behind the other. */
static bool has_marks(const char *script)
{
    const char *begin = strstr(script, ">>>>> Start Test Output");
    return begin && strstr(begin, ">>>>> End Test Output");
}

/* The first of its fields that was given; NULL: none. */
static const char *first_given(const struct task_swe *swe)
{
    const struct {
        const char *field;
        bool given;
    } rows[] = {{"eval.swe.test_patch", swe->test_patch},     {"eval.swe.script", swe->script},
                {"eval.swe.test_command", swe->test_command}, {"eval.swe.prepare", swe->prepare},
                {"eval.swe.fail_to_pass", swe->fail_to_pass}, {"eval.swe.pass_to_pass", swe->pass_to_pass},
                {"eval.swe.expected", swe->expected},         {"eval.swe.protected", swe->protected}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].given)
            return rows[i].field;
    return NULL;
}

static bool refuse_missing(struct refusal *no, const char *field, const char *instead)
{
    return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing; eval.kind swe requires it, or %s", field, instead);
}

static bool refuse_both(struct refusal *no, const char *field, const char *other)
{
    return refuse(no, REFUSAL_AMBIGUOUS, field, "only one of %s and %s may be given", other, field);
}

bool task_check_swe(const struct task *task, struct refusal *no)
{
    const struct task_swe *swe = &task->swe;
    const char *given = first_given(swe);
    if (strcmp(task->eval_kind, "swe") != 0)
        return !given || refuse(no, REFUSAL_BAD_TASK, given, "%s goes with eval.kind swe, and this task's is %s", given,
                                task->eval_kind);
    if (!swe->script && !swe->test_command)
        return refuse_missing(no, "eval.swe.test_command", "eval.swe.script");
    if (swe->script && swe->test_command)
        return refuse_both(no, "eval.swe.test_command", "eval.swe.script");
    if (swe->script && swe->prepare)
        return refuse_both(no, "eval.swe.prepare", "eval.swe.script");
    if (!swe->fail_to_pass && !swe->expected)
        return refuse_missing(no, "eval.swe.fail_to_pass", "eval.swe.expected");
    if (swe->expected && (swe->fail_to_pass || swe->pass_to_pass))
        return refuse_both(no, "eval.swe.expected",
                           swe->fail_to_pass ? "eval.swe.fail_to_pass" : "eval.swe.pass_to_pass");
    if (swe->script && !has_marks(swe->script))
        return refuse(
            no, REFUSAL_BAD_TASK, "eval.swe.script",
            "eval.swe.script must print '>>>>> Start Test Output' before the tests, and '>>>>> End Test Output' "
            "behind them");
    return is_commit(swe->base_commit) || refuse(no, REFUSAL_BAD_TASK, "eval.swe.base_commit",
                                                 "eval.swe.base_commit must be 7 to 64 hexadecimal digits, or HEAD");
}
