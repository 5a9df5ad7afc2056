#include "client/gateway/bodies/program_tests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/gateway/bodies/task_part.h"
#include "client/gateway/json_asked.h"
#include "client/gateway/json_text.h"
#include "common/base/cleanup.h"

enum { TESTS_MAX = 4096, EVAL_S = 120, TEST_S = 7, MORE_S = 5 };

struct reading {
    const char *place;
    struct fail *fail;
};

static void *wrong(const struct reading *reading, const char *what)
{
    fail_set(reading->fail, -EINVAL, "%s %s", reading->place, what);
    return NULL;
}

/* ---- values --------------------------------------------------------------------------------------------- */

/* What goes into standard input, or is expected from standard output: a text, lines of it, or a number. */
static json_t *text_of(const struct reading *reading, const json_t *value)
{
    AUTO_BUFFER text = {0};
    if (json_is_string(value))
        return json_incref((json_t *)(uintptr_t)value);
    if (json_is_number(value)) {
        json_text_append_value(&text, value);
        return json_stringn((const char *)text.data, text.len);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *line = json_array_get(value, i);
        if (!json_is_string(line))
            return wrong(reading, "must be texts, or lists of lines");
        buffer_append_str(&text, i > 0 ? "\n" : "");
        buffer_append(&text, json_string_value(line), json_string_length(line));
    }
    if (!json_is_array(value))
        return wrong(reading, "must be texts, or lists of lines");
    return json_stringn(text.data ? (const char *)text.data : "", text.len);
}

/* All arguments of a call: of a text each line is one, as JSON. */
static json_t *arguments_of(const struct reading *reading, const json_t *value)
{
    if (json_is_array(value))
        return json_incref((json_t *)(uintptr_t)value);
    const char *at = json_string_value(value);
    json_t *list = at ? json_array() : NULL;
    for (; list && *at; at += *at == '\n') {
        const size_t len = strcspn(at, "\n");
        json_t *one = json_asked_read(slice_of(at, len), JSON_DECODE_ANY, NULL);
        const bool is_blank = strspn(at, " \t\r") >= len;
        at += len;
        if (!is_blank && (!one || json_array_append_new(list, one) < 0)) {
            json_decref(list);
            return wrong(reading, "is not one JSON value a line");
        }
        if (is_blank)
            json_decref(one);
    }
    return list ? list : wrong(reading, "must be lists of arguments, or texts");
}

static json_t *mapped(const struct reading *reading, const json_t *list,
                      json_t *(*one_of)(const struct reading *, const json_t *))
{
    json_t *ret = json_array();
    for (size_t i = 0; ret && i < json_array_size(list); i++) {
        json_t *one = one_of(reading, json_array_get(list, i));
        if (!one || json_array_append_new(ret, one) < 0) {
            json_decref(ret);
            return NULL;
        }
    }
    return ret;
}

/* ---- forms ------------------------------------------------------------------------------------------------ */

static json_t *of_pairs(const struct reading *reading, const json_t *inputs, const json_t *outputs, const char *name)
{
    if (!json_is_array(inputs) || !json_is_array(outputs))
        return wrong(reading, "must have inputs and outputs, as lists");
    if (json_array_size(inputs) != json_array_size(outputs))
        return wrong(reading, "has another number of inputs than of outputs");
    const bool is_call = name && *name;
    json_t *in = mapped(reading, inputs, is_call ? arguments_of : text_of);
    json_t *out = is_call ? json_incref((json_t *)(uintptr_t)outputs) : in ? mapped(reading, outputs, text_of) : NULL;
    if (!in || !out) {
        json_decref(in);
        json_decref(out);
        return NULL;
    }
    json_t *tests = json_pack("{s:o,s:o}", "inputs", in, "outputs", out);
    if (is_call)
        json_object_set_new(tests, "fn_name", json_string(name));
    return tests;
}

/* The function that a case calls; "": it calls one that it does not name; NULL: none. */
static const char *called(const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "fn_name"));
    const json_t *kind = json_object_get(item, "testtype");
    const char *word = json_string_value(kind ? kind : json_object_get(item, "type"));
    const bool is_call = word && (strcmp(word, "functional") == 0 || strcmp(word, "function_call") == 0);
    return name && *name ? name : is_call ? "" : NULL;
}

static bool is_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static json_t *of_cases(const struct reading *reading, const json_t *cases)
{
    const char *name = called(json_array_get(cases, 0));
    json_t *inputs = json_array(), *outputs = json_array(), *tests = NULL;
    bool is_whole = true;
    for (size_t i = 0; is_whole && i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        json_t *input = json_object_get(item, "input"), *output = json_object_get(item, "output");
        if (!input || !output)
            is_whole = wrong(reading, "must be cases that have an input and an output") != NULL;
        else if (!is_same(called(item), name))
            is_whole = wrong(reading, "has tests of several kinds or functions") != NULL;
        else
            is_whole = json_array_append(inputs, input) == 0 && json_array_append(outputs, output) == 0;
    }
    if (is_whole && name && !*name)
        wrong(reading, "calls a function, and no fn_name says which");
    else if (is_whole)
        tests = of_pairs(reading, inputs, outputs, name);
    json_decref(inputs);
    json_decref(outputs);
    return tests;
}

static json_t *of_asserts(const struct reading *reading, const json_t *list)
{
    json_t *asserts = mapped(reading, list, text_of);
    return asserts ? json_pack("{s:o}", "asserts", asserts) : NULL;
}

static json_t *of_value(const struct reading *reading, const json_t *value)
{
    const json_t *cases = json_object_get(value, "test_cases"), *asserts = json_object_get(value, "assert_case");
    if (json_is_array(cases))
        value = cases;
    if (json_is_array(value))
        return of_cases(reading, value);
    if (!json_is_object(value))
        return wrong(reading, "must be tests");
    if (json_is_array(asserts))
        return of_asserts(reading, asserts);
    return of_pairs(reading, json_object_get(value, "inputs"), json_object_get(value, "outputs"),
                    json_string_value(json_object_get(value, "fn_name")));
}

/* NULL with a sentence. *count: how many. */
static json_t *read_tests(const struct reading *reading, const json_t *value, size_t *count)
{
    json_t *decoded = NULL;
    if (json_is_string(value))
        value = decoded = json_asked_read(slice_of(json_string_value(value), json_string_length(value)), 0, NULL);
    fail_memory(reading->fail);
    json_t *tests = value ? of_value(reading, value) : wrong(reading, "is not JSON");
    json_decref(decoded);
    const json_t *list = json_object_get(tests, "asserts");
    *count = json_array_size(list ? list : json_object_get(tests, "inputs"));
    if (tests && (*count == 0 || *count > TESTS_MAX)) {
        json_decref(tests);
        return wrong(reading, *count ? "has more than 4096 tests" : "is empty: there are no tests");
    }
    return tests;
}

bool program_tests_judge(const json_t *value, const char *place, json_t *task, struct fail *fail)
{
    size_t count;
    json_t *tests = read_tests(&(struct reading){place, fail}, value, &count);
    if (!tests)
        return false;
    const size_t seconds = TEST_S * count + MORE_S;
    json_object_set_new(task, "eval", json_pack("{s:s,s:o}", "kind", "code", "tests", tests));
    json_object_set_new(task_part(task, "limits"), "eval_s",
                        json_integer((json_int_t)(seconds > EVAL_S ? seconds : EVAL_S)));
    return true;
}
