#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "schemas/task_table.h"

static void cleanup_task(struct task **task) { task_destroy(*task); }
#define AUTO_TASK __attribute__((cleanup(cleanup_task))) struct task *

static struct task *parse(const char *json)
{
    struct refusal no = {0};
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        fail_msg("%s: %s", json, no.text);
    return task;
}

static void assert_refused_slice(struct slice json, enum refusal_reason reason, const char *field)
{
    struct refusal no = {0};
    AUTO_TASK task = task_parse(json, &no);
    if (task || no.reason != reason || strcmp(no.field, field) != 0)
        fail_msg("%.200s: %s [%s] '%s'", (const char *)json.data, refusal_wire(no.reason), no.field,
                 no.text);
    assert_true(strlen(no.text) > 10);
}

static void assert_refused(const char *json, enum refusal_reason reason, const char *field)
{
    assert_refused_slice(slice_from_str(json), reason, field);
}

/* A good task with one member more: assert_member("\"samples\":0", ...). */
static void assert_member_refused(const char *member, enum refusal_reason reason, const char *field)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",%s}", member);
    assert_refused_slice(buffer_peek(&json), reason, field);
}

static struct task *parse_member(const char *member)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",%s}", member);
    assert_true(buffer_append(&json, "", 1));
    return parse((const char *)json.data);
}

/* ---- good tasks ------------------------------------------------------------------------ */

static void the_smallest_task_gets_the_documented_defaults(void **state)
{
    (void)state;
    AUTO_TASK task = parse("{\"task\":\"t\",\"prompt\":\"p\"}");
    assert_string_equal(task->id, "t");
    assert_string_equal(task->kind, "sandbox");
    assert_string_equal(task->image, "host");
    assert_string_equal(task->agent_kind, "bash");
    assert_string_equal(task->eval_kind, "none");
    assert_true(task->agent_bash && task_needs_engine(task));
    assert_int_equal(task->message_count, 1);
    assert_string_equal(task->messages[0].role, "user");
    assert_string_equal(task->messages[0].content, "p");
    assert_true(task->sampling.temperature == 1 && task->sampling.top_p == 1);
    assert_true(task->sampling.min_p == 0 && task->sampling.top_k == 0);
    assert_int_equal(task->sampling.max_tokens, 1024);
    assert_int_equal(task->sampling.seed, -1);
    const struct task_limits limits = {.init_s = 120, .run_s = 600, .eval_s = 120, .command_s = 30,
                                       .output_bytes = 16384, .memory_mib = 2048, .disk_mib = 512,
                                       .processes = 256};
    assert_memory_equal(&task->limits, &limits, sizeof(limits));
    assert_int_equal(task->max_turns, 20);
    assert_int_equal(task->samples, 1);
    assert_int_equal(task->file_count + task->setup_count + task->eval_file_count, 0);
    assert_null(task->eval_command);
    assert_null(task->eval_reward_file);
    assert_null(task->eval_answer);
}

static void every_field_reaches_its_member(void **state)
{
    (void)state;
    AUTO_TASK task = parse(
        "{\"task\":\"t-1\",\"kind\":\"sandbox\",\"image\":\"/images/debian\",\"samples\":8,"
        "\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"\"}],"
        "\"files\":[{\"path\":\"a/b\",\"text\":\"x\\ny\"},"
        "{\"path\":\"/etc/c\",\"base64\":\"AP8Q\",\"mode\":\"0755\"},{\"path\":\"d\",\"text\":\"\",\"mode\":\"600\"}],"
        "\"setup\":[\"true\",\"ls\"],\"metadata\":{\"a\":[1,{\"b\":null}]},"
        "\"agent\":{\"kind\":\"bash\",\"tools\":[\"bash\"],\"max_turns\":3},"
        "\"sampling\":{\"temperature\":0,\"top_p\":0.5,\"top_k\":40,\"min_p\":0.25,\"max_tokens\":7,\"seed\":9},"
        "\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"reward_file\":\"r\",\"files\":{\"/e\":\"z\"}},"
        "\"limits\":{\"init_s\":1,\"run_s\":2,\"eval_s\":3,\"command_s\":4,\"context_tokens\":5,"
        "\"output_bytes\":256,\"memory_mib\":16,\"disk_mib\":8,\"processes\":9}}");
    assert_string_equal(task->image, "/images/debian");
    assert_int_equal(task->message_count, 2);
    assert_string_equal(task->messages[0].role, "system");
    assert_string_equal(task->messages[1].content, "");
    assert_int_equal(task->file_count, 3);
    assert_string_equal(task->files[0].path, "a/b");
    assert_memory_equal(task->files[0].content, "x\ny", 3);
    assert_int_equal(task->files[0].mode, 0644);
    assert_int_equal(task->files[1].content_len, 3);
    assert_memory_equal(task->files[1].content, "\0\xff\x10", 3);
    assert_int_equal(task->files[1].mode, 0755);
    assert_int_equal(task->files[2].content_len, 0);
    assert_int_equal(task->files[2].mode, 0600);
    assert_int_equal(task->setup_count, 2);
    assert_string_equal(task->setup[1], "ls");
    assert_int_equal(task->max_turns, 3);
    assert_true(task->sampling.temperature == 0 && task->sampling.top_p == 0.5);
    assert_true(task->sampling.top_k == 40 && task->sampling.min_p == 0.25);
    assert_true(task->sampling.max_tokens == 7 && task->sampling.seed == 9);
    assert_string_equal(task->eval_command, "c");
    assert_string_equal(task->eval_reward_file, "r");
    assert_int_equal(task->eval_file_count, 1);
    assert_string_equal(task->eval_files[0].path, "/e");
    assert_memory_equal(task->eval_files[0].content, "z", 1);
    const struct task_limits limits = {1, 2, 3, 4, 5, 256, 16, 8, 9};
    assert_memory_equal(&task->limits, &limits, sizeof(limits));
    assert_int_equal(task->samples, 8);
}

static void the_agents_kind_and_tools_follow_from_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *agent, *kind;
        bool bash;
    } rows[] = {
        {"{}", "bash", true},
        {"{\"tools\":[\"bash\"]}", "bash", true},
        {"{\"tools\":[]}", "chat", false},
        {"{\"kind\":\"chat\"}", "chat", false},
        {"{\"kind\":\"bash\"}", "bash", true},
        {"{\"kind\":\"none\",\"tools\":[]}", "none", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER member = {0};
        buffer_printf(&member, "\"agent\":%s", rows[i].agent);
        assert_true(buffer_append(&member, "", 1));
        AUTO_TASK task = parse_member((const char *)member.data);
        assert_string_equal(task->agent_kind, rows[i].kind);
        assert_true(task->agent_bash == rows[i].bash);
    }
    assert_member_refused("\"agent\":{\"kind\":\"bash\",\"tools\":[]}", REFUSAL_BAD_TASK,
                          "agent.tools");
    assert_member_refused("\"agent\":{\"kind\":\"chat\",\"tools\":[\"bash\"]}", REFUSAL_BAD_TASK,
                          "agent.tools");
}

static void a_task_that_samples_nothing_needs_no_prompt_and_no_engine(void **state)
{
    (void)state;
    AUTO_TASK noop = parse("{\"task\":\"t\",\"kind\":\"noop\"}");
    AUTO_TASK none = parse("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"}}");
    AUTO_TASK chat = parse("{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"chat\"}}");
    assert_false(task_needs_engine(noop) || task_needs_engine(none));
    assert_true(task_needs_engine(chat));
    assert_int_equal(noop->message_count, 0);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void a_strange_field_is_named_by_its_path(void **state)
{
    (void)state;
    assert_member_refused("\"toolz\":1", REFUSAL_UNKNOWN_FIELD, "toolz");
    assert_member_refused("\"agent\":{\"toolz\":1}", REFUSAL_UNKNOWN_FIELD, "agent.toolz");
    assert_member_refused("\"limits\":{\"run\":1}", REFUSAL_UNKNOWN_FIELD, "limits.run");
    assert_member_refused("\"files\":[{\"path\":\"a\",\"text\":\"\"},{\"name\":\"a\"}]",
                          REFUSAL_UNKNOWN_FIELD, "files[1].name");
    assert_member_refused("\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"files\":[{\"a\":1}]}",
                          REFUSAL_UNKNOWN_FIELD, "eval.files[0].a");
    assert_member_refused("\"agent.kind\":\"bash\"", REFUSAL_UNKNOWN_FIELD, "agent.kind");
    assert_member_refused("\"files[].path\":\"a\"", REFUSAL_UNKNOWN_FIELD, "files[].path");
    assert_member_refused("\"a\\nb\\u00e9\":1", REFUSAL_UNKNOWN_FIELD, "a?b??");
    assert_member_refused("\"\":1", REFUSAL_UNKNOWN_FIELD, "");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    assert_refused("{}", REFUSAL_MISSING_FIELD, "task");
    assert_refused("{\"prompt\":\"p\"}", REFUSAL_MISSING_FIELD, "task");
    assert_refused("{\"task\":\"t\"}", REFUSAL_MISSING_FIELD, "prompt");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"user\"}]}", REFUSAL_MISSING_FIELD,
                   "messages[0].content");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"content\":\"\"}]}", REFUSAL_MISSING_FIELD,
                   "messages[0].role");
    assert_member_refused("\"files\":[{\"text\":\"\"}]", REFUSAL_MISSING_FIELD, "files[0].path");
    assert_member_refused("\"files\":[{\"path\":\"a\"}]", REFUSAL_MISSING_FIELD, "files[0].text");
    assert_member_refused("\"eval\":{\"kind\":\"command\"}", REFUSAL_MISSING_FIELD, "eval.command");
    assert_member_refused("\"eval\":{\"kind\":\"math\"}", REFUSAL_MISSING_FIELD, "eval.answer");
}

static void one_of_two_is_not_both(void **state)
{
    (void)state;
    const char *messages = "[{\"role\":\"user\",\"content\":\"c\"}]";
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"messages\":%s,\"prompt\":\"p\"}", messages);
    assert_refused_slice(buffer_peek(&json), REFUSAL_AMBIGUOUS, "prompt");
    buffer_clear(&json);
    buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",\"messages\":%s}", messages);
    assert_refused_slice(buffer_peek(&json), REFUSAL_AMBIGUOUS, "messages");
    assert_member_refused("\"files\":[{\"path\":\"a\",\"text\":\"\",\"base64\":\"\"}]",
                          REFUSAL_AMBIGUOUS, "files[0].base64");
}

static void what_belongs_to_another_evaluator_is_refused(void **state)
{
    (void)state;
    assert_member_refused("\"eval\":{\"command\":\"c\"}", REFUSAL_BAD_TASK, "eval.command");
    assert_member_refused("\"eval\":{\"kind\":\"math\",\"answer\":\"2\",\"reward_file\":\"r\"}",
                          REFUSAL_BAD_TASK, "eval.reward_file");
    assert_member_refused("\"eval\":{\"files\":{\"a\":\"\"}}", REFUSAL_BAD_TASK, "eval.files");
    assert_member_refused("\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"answer\":\"2\"}",
                          REFUSAL_BAD_TASK, "eval.answer");
}

static void rules_of_single_fields_hold(void **state)
{
    (void)state;
    static const struct {
        const char *member;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {"\"kind\":\"sandbx\"", REFUSAL_BAD_TASK, "kind"},
        {"\"kind\":\"sandbox|noop\"", REFUSAL_BAD_TASK, "kind"},
        {"\"kind\":\"\"", REFUSAL_BAD_TASK, "kind"},
        {"\"kind\":\"noo\"", REFUSAL_BAD_TASK, "kind"},
        {"\"agent\":{\"kind\":\"robot\"}", REFUSAL_BAD_TASK, "agent.kind"},
        {"\"agent\":{\"tools\":[\"bash\",\"python\"]}", REFUSAL_BAD_TASK, "agent.tools[1]"},
        {"\"eval\":{\"kind\":\"judge\"}", REFUSAL_BAD_TASK, "eval.kind"},
        {"\"image\":\"debian:12\"", REFUSAL_BAD_TASK, "image"},
        {"\"image\":\"/a/../b\"", REFUSAL_BAD_TASK, "image"},
        {"\"files\":{\"../x\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"a/../../x\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"a/..\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"a/\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"/\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"a/.\":\"\"}", REFUSAL_BAD_TASK, "files[0].path"},
        {"\"files\":{\"\":\"\"}", REFUSAL_TOO_SMALL, "files[0].path"},
        {"\"files\":[{\"path\":\"a\",\"text\":\"\",\"mode\":\"4755\"}]", REFUSAL_BAD_TASK, "files[0].mode"},
        {"\"files\":[{\"path\":\"a\",\"text\":\"\",\"mode\":\"rwx\"}]", REFUSAL_BAD_TASK, "files[0].mode"},
        {"\"files\":[{\"path\":\"a\",\"text\":\"\",\"mode\":\"0888\"}]", REFUSAL_BAD_TASK, "files[0].mode"},
        {"\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"reward_file\":\"../r\"}", REFUSAL_BAD_TASK, "eval.reward_file"},
        {"\"sampling\":{\"seed\":1.0}", REFUSAL_WRONG_TYPE, "sampling.seed"},
        {"\"sampling\":{\"temperature\":-0.5}", REFUSAL_TOO_SMALL, "sampling.temperature"},
        {"\"sampling\":{\"top_p\":1.5}", REFUSAL_TOO_LARGE, "sampling.top_p"},
        {"\"metadata\":[]", REFUSAL_WRONG_TYPE, "metadata"},
        {"\"setup\":[\"\"]", REFUSAL_TOO_SMALL, "setup[0]"},
        {"\"setup\":[7]", REFUSAL_WRONG_TYPE, "setup[0]"},
        {"\"files\":\"x\"", REFUSAL_WRONG_TYPE, "files"},
        {"\"files\":{\"a\":7}", REFUSAL_WRONG_TYPE, "files[0].text"},
        {"\"files\":[7]", REFUSAL_WRONG_TYPE, "files[0]"},
        {"\"agent\":{\"tools\":[null]}", REFUSAL_WRONG_TYPE, "agent.tools[0]"},
        {"\"agent\":null", REFUSAL_WRONG_TYPE, "agent"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_member_refused(rows[i].member, rows[i].reason, rows[i].field);
    assert_refused("{\"task\":\"a b\",\"prompt\":\"p\"}", REFUSAL_BAD_NAME, "task");
    assert_refused("{\"task\":\"a/b\",\"prompt\":\"p\"}", REFUSAL_BAD_NAME, "task");
    assert_refused("{\"task\":\"\",\"prompt\":\"p\"}", REFUSAL_TOO_SMALL, "task");
    assert_refused("{\"task\":\"t\",\"messages\":[]}", REFUSAL_TOO_SMALL, "messages");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"assistant\",\"content\":\"c\"}]}",
                   REFUSAL_BAD_TASK, "messages");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"tool\",\"content\":\"c\"}]}",
                   REFUSAL_BAD_TASK, "messages[0].role");
}

/* ---- every row of the table --------------------------------------------------------------- */

/* `value` at a path such as "limits.run_s", or in the first element of a list, as one member. */
static void put_at(struct buffer *out, const char *path, struct slice value)
{
    const char *dot = strchr(path, '.');
    if (strncmp(path, "files[].", 8) == 0)
        buffer_printf(out, "\"files\":[{\"%s\":%.*s}]", path + 8, SLICE_ARG(value));
    else if (dot)
        buffer_printf(out, "\"%.*s\":{\"%s\":%.*s}", (int)(dot - path), path, dot + 1,
                      SLICE_ARG(value));
    else
        buffer_printf(out, "\"%s\":%.*s", path, SLICE_ARG(value));
}

/* Rows that a good task can be given beside its task and prompt. */
static bool stands_alone(const struct task_row *row)
{
    return strncmp(row->path, "messages", 8) != 0 && strcmp(row->path, "prompt") != 0 &&
           strcmp(row->path, "task") != 0;
}

static void assert_row_refused(const struct task_row *row, struct slice value,
                               enum refusal_reason reason)
{
    AUTO_BUFFER json = {0};
    char field[128];
    const char *list = strstr(row->path, "[]");
    snprintf(field, sizeof(field), "%.*s%s%s", list ? (int)(list - row->path) : 127, row->path,
             list ? "[0]" : "", list ? list + 2 : "");
    buffer_append_str(&json, "{\"task\":\"t\",\"prompt\":\"p\",");
    put_at(&json, row->path, value);
    buffer_append_str(&json, "}");
    assert_refused_slice(buffer_peek(&json), reason, field);
}

static void every_row_refuses_another_type(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < task_row_count; i++)
        if (stands_alone(&task_rows[i])) {
            assert_row_refused(&task_rows[i], slice_from_str("null"), REFUSAL_WRONG_TYPE);
            assert_row_refused(&task_rows[i], slice_from_str("true"), REFUSAL_WRONG_TYPE);
            seen++;
        }
    assert_true(seen > 35);
}

static void put_measure(struct buffer *out, const struct task_row *row, double n)
{
    bool is_number = row->type == TASK_UINT || row->type == TASK_INT || row->type == TASK_REAL;
    bool is_list = row->type == TASK_FILES || row->type == TASK_EVAL_FILES ||
                   row->type == TASK_SETUP || row->type == TASK_TOOLS;
    buffer_append_str(out, is_number ? "" : is_list ? "[" : "\"");
    if (is_number)
        buffer_printf(out, "%.15g", n);
    for (double k = 0; k < n && !is_number; k++)
        buffer_append_str(out, !is_list ? "a" : k ? ",7" : "7");
    buffer_append_str(out, is_number ? "" : is_list ? "]" : "\"");
}

static void every_row_refuses_what_is_beyond_its_bounds(void **state)
{
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        AUTO_BUFFER large = {0}, small = {0};
        if (!stands_alone(row) || row->words || row->max == 0)
            continue;
        put_measure(&large, row, row->max + 1);
        if (large.len < TASK_BYTES_MAX / 2) {
            assert_row_refused(row, buffer_peek(&large), REFUSAL_TOO_LARGE);
            seen++;
        }
        if (row->type != TASK_UINT && row->min <= 0 && row->type != TASK_INT &&
            row->type != TASK_REAL)
            continue;
        put_measure(&small, row, row->min - 1);
        assert_row_refused(row, buffer_peek(&small), REFUSAL_TOO_SMALL);
        seen++;
    }
    assert_true(seen > 40);
}

static void every_number_has_a_default_within_its_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        if (row->type != TASK_UINT && row->type != TASK_INT && row->type != TASK_REAL)
            continue;
        assert_non_null(row->default_value);
        double value = strtod(row->default_value, NULL);
        assert_true(value >= row->min && value <= row->max);
    }
}

/* ---- JSON at fault -------------------------------------------------------------------------- */

static void json_that_is_not_a_good_object_is_refused(void **state)
{
    (void)state;
    assert_refused("", REFUSAL_MALFORMED, "");
    assert_refused("{", REFUSAL_MALFORMED, "");
    assert_refused("7", REFUSAL_MALFORMED, "");
    assert_refused("[]", REFUSAL_WRONG_TYPE, "");
    assert_refused("{\"task\":\"t\",\"prompt\":\"p\"} x", REFUSAL_MALFORMED, "");
    assert_refused("{\"task\":\"t\",\"task\":\"t\"}", REFUSAL_DUPLICATE_FIELD, "");
    assert_refused("{\"task\":\"t\",\"metadata\":{\"a\":1,\"a\":2}}", REFUSAL_DUPLICATE_FIELD, "");
    assert_refused("{\"task\":\"\xff\"}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"task\":\"t\\u0000\"}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"a\\u0000\":1}", REFUSAL_NOT_UTF8, "");
    assert_refused("{\"samples\":99999999999999999999}", REFUSAL_TOO_LARGE, "");
    assert_refused("{\"sampling\":{\"top_p\":1e999}}", REFUSAL_TOO_LARGE, "");
    assert_refused("{\"sampling\":{\"top_p\":NaN}}", REFUSAL_MALFORMED, "");
}

static void a_nested_bomb_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER json = {0};
    buffer_append_str(&json, "{\"task\":\"t\",\"prompt\":\"p\",\"metadata\":");
    for (size_t i = 0; i < 500000; i++)
        buffer_append_str(&json, "[");
    assert_refused_slice(buffer_peek(&json), REFUSAL_TOO_LARGE, "");
}

static void a_task_over_a_mebibyte_is_refused_unread(void **state)
{
    (void)state;
    AUTO_FREE uint8_t *bytes = malloc(TASK_BYTES_MAX + 1);
    assert_non_null(bytes);
    memset(bytes, '[', TASK_BYTES_MAX + 1);
    assert_refused_slice(slice_of(bytes, TASK_BYTES_MAX + 1), REFUSAL_TOO_LARGE, "");
}

static const char full[] = "{\"task\":\"t\",\"prompt\":\"p\",\"files\":[{\"path\":\"a\",\"base64\":\"AP8Q\"}],"
                           "\"setup\":[\"ls\"],\"eval\":{\"kind\":\"math\",\"answer\":\"2\"},"
                           "\"limits\":{\"run_s\":9},\"metadata\":{\"x\":[1,2.5,\"\\u00e9\"]}}";

static void every_truncation_is_refused(void **state)
{
    (void)state;
    AUTO_TASK task = parse(full);
    for (size_t len = 0; len < sizeof(full) - 1; len++) {
        AUTO_FREE char *cut = malloc(len + 1);
        assert_non_null(cut);
        memcpy(cut, full, len);
        assert_refused_slice(slice_of(cut, len), REFUSAL_MALFORMED, "");
    }
}

static void any_one_byte_damaged_is_refused_or_read(void **state)
{
    (void)state;
    char bytes[sizeof(full)];
    size_t refused = 0;
    memcpy(bytes, full, sizeof(full));
    for (size_t at = 0; at < sizeof(full) - 1; at++)
        for (unsigned flip = 1; flip < 256; flip++) {
            struct refusal no = {0};
            bytes[at] = (char)(full[at] ^ (int)flip);
            AUTO_TASK task = task_parse(slice_of(bytes, sizeof(full) - 1), &no);
            assert_true(!task == (no.reason != REFUSAL_NONE));
            refused += !task;
            bytes[at] = full[at];
        }
    assert_true(refused > 10000);
}

static void base64_is_read_only_as_the_standard_writes_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *content;
    } rows[] = {
        {"", ""},         {"Zg==", "f"},  {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYg==", "foob"},
        {"+/+/", "\xfb\xff\xbf"}, {"Zg=", NULL},  {"Zg", NULL},   {"Z===", NULL},  {"====", NULL},
        {"Zh==", NULL},   {"Zm9=", NULL}, {"Zg==Zg==", NULL}, {"Zm 9", NULL}, {"Zm-_", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER member = {0};
        buffer_printf(&member, "\"files\":[{\"path\":\"a\",\"base64\":\"%s\"}]", rows[i].text);
        assert_true(buffer_append(&member, "", 1));
        if (!rows[i].content) {
            assert_member_refused((const char *)member.data, REFUSAL_BAD_TASK, "files[0].base64");
            continue;
        }
        AUTO_TASK task = parse_member((const char *)member.data);
        assert_true(slice_is(slice_of(task->files[0].content, task->files[0].content_len),
                             rows[i].content));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_task_gets_the_documented_defaults),
        cmocka_unit_test(every_field_reaches_its_member),
        cmocka_unit_test(the_agents_kind_and_tools_follow_from_each_other),
        cmocka_unit_test(a_task_that_samples_nothing_needs_no_prompt_and_no_engine),
        cmocka_unit_test(a_strange_field_is_named_by_its_path),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(one_of_two_is_not_both),
        cmocka_unit_test(what_belongs_to_another_evaluator_is_refused),
        cmocka_unit_test(rules_of_single_fields_hold),
        cmocka_unit_test(every_row_refuses_another_type),
        cmocka_unit_test(every_row_refuses_what_is_beyond_its_bounds),
        cmocka_unit_test(every_number_has_a_default_within_its_bounds),
        cmocka_unit_test(json_that_is_not_a_good_object_is_refused),
        cmocka_unit_test(a_nested_bomb_is_refused),
        cmocka_unit_test(a_task_over_a_mebibyte_is_refused_unread),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(any_one_byte_damaged_is_refused_or_read),
        cmocka_unit_test(base64_is_read_only_as_the_standard_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
