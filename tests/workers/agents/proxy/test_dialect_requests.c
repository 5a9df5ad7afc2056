/*
 * What harnesses ask, in each dialect: the tables requests_*.txt. A case is "== what it is", a body of JSON, "--", and
 * what it comes to: messages and tools, or the refusal. "== and ..." repeats a body of the case before it: lines
 * "PATH = JSON" say what is another there.
 */
#include "tests/workers/agents/proxy/body_checks.h"
#include "tests/workers/agents/proxy/dialect_world.h"

/* The value at a path such as messages[1].content, set. */
static void set_at(json_t *root, const char *path, json_t *value)
{
    while (*path) {
        const size_t name = strcspn(path, ".[");
        char key[64];
        snprintf(key, sizeof(key), "%.*s", (int)name, path);
        char *end;
        const bool is_element = *path == '[';
        const size_t at = is_element ? strtoul(path + 1, &end, 10) : 0;
        path = is_element ? end + 1 : path + name;
        path += *path == '.';
        json_t *next = is_element ? json_array_get(root, at) : json_object_get(root, key);
        if (*path && !next)
            fail_msg("there is nothing at %s", key);
        if (!*path && is_element)
            assert_int_equal(
                at < json_array_size(root) ? json_array_set(root, at, value) : json_array_append(root, value), 0);
        else if (!*path)
            assert_int_equal(json_object_set(root, key, value), 0);
        root = next;
    }
    json_decref(value);
}

/* Lines "PATH = JSON", on a copy of the case before. */
static json_t *changed(const json_t *before, char *lines)
{
    json_t *body = json_deep_copy(before);
    char *rest;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strstr(line, " = ");
        assert_non_null(value);
        *value = '\0';
        set_at(body, line, parse_json(value + 3, strlen(value + 3)));
    }
    return body;
}

static void check_table(const char *name)
{
    AUTO_FREE char *table = read_requests(name);
    json_t *before = NULL;
    size_t wrong = 0, count = 0;
    for (char *at = strstr(table, "== "); at; count++) {
        char *next = strstr(at, "\n\n== "), *text = strchr(at, '\n') + 1, *expected = strstr(at, "\n--\n");
        assert_non_null(expected);
        if (next)
            next[1] = '\0';
        expected[0] = '\0';
        const bool is_change = strncmp(at, "== and ", 7) == 0;
        json_t *body = is_change ? changed(before, text) : parse_json(text, strlen(text));
        AUTO_FREE char *got = body_as_text(dialect_named(name), body);
        if (strcmp(got, expected + 4) != 0) {
            print_error("%s: %.*s\n%s--- expected:\n%s", name, (int)strcspn(at, "\n"), at, got, expected + 4);
            wrong++;
        }
        if (!is_change) {
            json_decref(before);
            before = json_incref(body);
        }
        json_decref(body);
        at = next ? next + 2 : NULL;
    }
    json_decref(before);
    assert_int_equal(wrong, 0);
    assert_true(count > 15);
}

static void chat_is_read(void **state) { (void)state, check_table("chat"); }
static void responses_is_read(void **state) { (void)state, check_table("responses"); }
static void anthropic_is_read(void **state) { (void)state, check_table("anthropic"); }
static void google_is_read(void **state) { (void)state, check_table("google"); }

/* ---- bounds ------------------------------------------------------------------------------------ */

static json_t *many(const char *what, size_t count)
{
    json_t *list = json_array(), *one = parse_json(what, strlen(what));
    for (size_t i = 0; i < count; i++)
        json_array_append(list, one);
    json_decref(one);
    return list;
}

static void assert_read(const char *dialect, json_t *body, const char *expected)
{
    AUTO_FREE char *got = body_as_text(dialect_named(dialect), body);
    got[strcspn(got, "\n")] = '\0';
    assert_string_equal(got, expected);
    json_decref(body);
}

static void what_is_too_much_is_refused_by_name(void **state)
{
    (void)state;
    const char *hello = "{\"role\": \"user\", \"content\": \"a\"}";
    assert_read("chat", json_pack("{s:o}", "messages", many(hello, 4096)), "model -");
    assert_read("chat", json_pack("{s:o}", "messages", many(hello, 4097)),
                "refused: messages[4096]: there are more than 4096 messages");
    const char *call = "{\"id\": \"a\", \"type\": \"function\", \"function\": {\"name\": \"b\", \"arguments\": \"\"}}";
    assert_read("chat", json_pack("{s:[{s:s, s:o}]}", "messages", "role", "assistant", "tool_calls", many(call, 65)),
                "refused: messages[0].tool_calls[64]: a turn has more than 64 calls");
    json_t *tools = json_array();
    for (int i = 0; i < 65; i++) {
        char name[8];
        snprintf(name, sizeof(name), "t%d", i);
        json_array_append_new(tools, json_pack("{s:s}", "name", name));
    }
    assert_read("anthropic", json_pack("{s:[o], s:o}", "messages", parse_json(hello, strlen(hello)), "tools", tools),
                "refused: tools[64]: there are more than 64 tools");
}

/* A reference of some bytes stands for a schema of many. */
static void tools_that_were_found_are_bounded(void **state)
{
    (void)state;
    const char *reference = "{\"type\": \"tool_reference\", \"tool_name\": \"a\"}";
    AUTO_FREE char *doc = calloc(1, 1025);
    memset(doc, 'x', 1024);
    for (size_t count = 900; count <= 1024; count += 124)
        assert_read("anthropic",
                    json_pack("{s:[{s:s, s:[{s:s, s:s, s:o}]}], s:[{s:s, s:s}]}", "messages", "role", "user", "content",
                              "type", "tool_result", "tool_use_id", "b", "content", many(reference, count), "tools",
                              "name", "a", "description", doc),
                    count < 1000 ? "model -, usage"
                                 : "refused: messages[0].content[0].content[976]: the tools that were found come to "
                                   "more than 1048576 bytes");
    const char *held = "{\"name\": \"a\", \"defer_loading\": true}";
    assert_read(
        "anthropic",
        json_pack("{s:[{s:s, s:s}], s:o}", "messages", "role", "user", "content", "a", "tools", many(held, 1025)),
        "refused: tools[1024]: there are more than 1024 tools");
}

/* {"a": and lists within each other, `depth` levels in all; NULL where the arguments stay text. */
static void assert_arguments(size_t depth, bool are_read)
{
    struct buffer deep = {0};
    buffer_append_str(&deep, "{\"a\":");
    for (size_t i = 1; i < depth; i++)
        buffer_append_str(&deep, "[");
    for (size_t i = 1; i < depth; i++)
        buffer_append_str(&deep, "]");
    buffer_append_str(&deep, "}");
    AUTO_FREE char *text = buffer_take_str(&deep);
    json_t *body = json_pack("{s:[{s:s, s:[{s:s, s:{s:s, s:s}}]}]}", "messages", "role", "assistant", "tool_calls",
                             "id", "a", "function", "name", "b", "arguments", text);
    struct said_request request = {0};
    assert_int_equal(dialect_chat.read(body, &request, NULL), 0);
    assert_int_equal(request.messages[0].calls[0].arguments != NULL, are_read);
    if (!are_read)
        assert_string_equal(request.messages[0].calls[0].text, text);
    said_request_finish(&request);
    json_decref(body);
}

static void arguments_that_are_too_deep_stay_text(void **state)
{
    (void)state;
    assert_arguments(SAID_DEPTH_MAX, true);
    assert_arguments(SAID_DEPTH_MAX + 1, false);
    assert_arguments(1000000, false);
}

/* Items that join, and results that look for their calls, cost what they are long. */
static void long_histories_are_read_at_once(void **state)
{
    (void)state;
    const char *parts = "{\"type\": \"output_text\", \"text\": \"abcdefgh\"}";
    json_t *body = json_pack("{s:[{s:s, s:o}]}", "input", "role", "assistant", "content", many(parts, 200000));
    struct said_request request = {0};
    assert_int_equal(dialect_responses.read(body, &request, NULL), 0);
    assert_int_equal(strlen(request.messages[0].text), 200000 * 9 - 1);
    said_request_finish(&request);
    json_decref(body);
    const char *result = "{\"role\": \"tool\", \"tool_call_id\": \"nobody\", \"content\": \"a\"}";
    assert_read("chat", json_pack("{s:o}", "messages", many(result, 4096)), "model -");
}

static void without_words_a_refusal_is_a_code(void **state)
{
    (void)state;
    json_t *body = json_array();
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        struct said_request request = {0};
        assert_int_equal(dialect_named(dialect_names[i])->read(body, &request, NULL), -EINVAL);
        said_request_finish(&request);
        said_request_finish(&request);
    }
    json_decref(body);
}

/* Each body of a dialect's table, changed by and by in places that chance chooses, is read by all four. */
static void mutate_table(const char *name, uint64_t chance)
{
    enum { STEPS = 1500, NEW_EVERY = 40 };
    AUTO_FREE char *table = read_requests(name);
    const char *at = table;
    for (json_t *whole; (whole = next_body(&at)); json_decref(whole)) {
        json_t *body = json_deep_copy(whole);
        for (int i = 0; i < STEPS; i++) {
            if (i % NEW_EVERY == 0) {
                json_decref(body);
                body = json_deep_copy(whole);
            }
            body = mutate_value(body, &chance);
            check_body(dialect_named(i % 5 ? name : dialect_names[i / 5 % DIALECT_NAMES]), body);
        }
        json_decref(body);
    }
}

static void bodies_that_were_mutated_do_no_harm(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DIALECT_NAMES; i++)
        mutate_table(dialect_names[i], i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_is_read),
        cmocka_unit_test(responses_is_read),
        cmocka_unit_test(anthropic_is_read),
        cmocka_unit_test(google_is_read),
        cmocka_unit_test(what_is_too_much_is_refused_by_name),
        cmocka_unit_test(tools_that_were_found_are_bounded),
        cmocka_unit_test(arguments_that_are_too_deep_stay_text),
        cmocka_unit_test(long_histories_are_read_at_once),
        cmocka_unit_test(without_words_a_refusal_is_a_code),
        cmocka_unit_test(bodies_that_were_mutated_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
