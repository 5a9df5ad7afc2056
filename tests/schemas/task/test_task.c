#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/schemas/task/task_asserts.h"

/* ---- good tasks ------------------------------------------------------------------------ */

static void the_smallest_task_gets_the_documented_defaults(void **state)
{
    (void)state;
    AUTO_TASK task = parse("{\"task\":\"t\",\"prompt\":\"p\"}");
    assert_string_equal(task->id, "t");
    assert_string_equal(task->kind, "sandbox");
    assert_string_equal(task->image, "host");
    assert_string_equal(task->agent_kind, "chat");
    assert_string_equal(task->eval_kind, "none");
    assert_true(task_needs_engine(task));
    assert_int_equal(task->tool_count, 0);
    assert_int_equal(task->message_count, 1);
    assert_string_equal(task->messages[0].role, "user");
    assert_string_equal(task->messages[0].content, "p");
    assert_true(task->sampling.temperature == 1 && task->sampling.top_p == 1);
    assert_true(task->sampling.min_p == 0 && task->sampling.top_k == 0);
    assert_int_equal(task->sampling.max_tokens, 1024);
    assert_int_equal(task->sampling.seed, -1);
    const struct task_limits limits = {.init_s = 120,
                                       .run_s = 600,
                                       .eval_s = 120,
                                       .total_s = 604800,
                                       .command_s = 30,
                                       .output_bytes = 16384,
                                       .memory_mib = 2048,
                                       .disk_mib = 512,
                                       .processes = 256,
                                       .file_mib = 1048576};
    assert_memory_equal(&task->limits, &limits, offsetof(struct task_limits, versions_behind));
    assert_int_equal(task->limits.versions_behind, -1);
    assert_string_equal(task->limits.on_stale, "stop");
    assert_int_equal(task->max_turns, 20);
    assert_int_equal(task->max_format_errors, 3);
    assert_int_equal(task->max_repeats, 0);
    assert_string_equal(task->agent_form, "auto");
    assert_string_equal(task->agent_tool_role, "auto");
    assert_string_equal(task->on_repeat, "end");
    assert_int_equal(task->samples, 1);
    assert_int_equal(task->file_count + task->setup_count + task->eval_file_count, 0);
    assert_null(task->eval_command);
    assert_null(task->eval_reward_file);
    assert_string_equal(task->eval_trust, "none");
    assert_null(task->eval_answer);
}

/* Such that a call which is never answered is over before the task's own limit. */
static void a_judge_has_more_time_unless_the_task_says(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"eval\":{\"kind\":\"judge\",\"judge\":{\"reference\":\"4\"}}");
    AUTO_TASK hasty = parse_member("\"eval\":{\"kind\":\"judge\",\"judge\":{\"reference\":\"4\"}},"
                                   "\"limits\":{\"eval_s\":120}");
    assert_int_equal(task->limits.eval_s, 1200);
    assert_int_equal(hasty->limits.eval_s, 120);
}

static void every_field_reaches_its_member(void **state)
{
    (void)state;
    AUTO_TASK task = parse("{\"task\":\"t-1\",\"kind\":\"sandbox\",\"image\":\"/images/debian\",\"samples\":8,"
                           "\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"\"}"
                           "],"
                           "\"files\":[{\"path\":\"a/b\",\"text\":\"x\\ny\"},"
                           "{\"path\":\"/etc/"
                           "c\",\"base64\":\"AP8Q\",\"mode\":\"0755\"},{\"path\":\"d\",\"text\":\"\",\"mode\":\"600\"}"
                           "],"
                           "\"setup\":[\"true\",\"ls\"],\"metadata\":{\"a\":[1,{\"b\":null}]},"
                           "\"agent\":{\"kind\":\"bash\",\"tools\":[\"bash\"],\"max_turns\":3,\"max_format_errors\":"
                           "15,"
                           "\"max_repeats\":16,\"on_repeat\":\"warn\"},"
                           "\"sampling\":{\"temperature\":0,\"top_p\":0.5,\"top_k\":40,\"min_p\":0.25,\"max_tokens\":"
                           "7,\"seed\":9},"
                           "\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"reward_file\":\"r\",\"files\":{\"/"
                           "e\":\"z\"}},"
                           "\"limits\":{\"init_s\":1,\"run_s\":2,\"eval_s\":3,\"total_s\":10,\"command_s\":4,"
                           "\"context_tokens\":5,\"sampled_tokens\":14,"
                           "\"output_bytes\":256,\"memory_mib\":16,\"disk_mib\":8,\"processes\":9,"
                           "\"inodes\":11,\"file_mib\":12,\"cpus\":13,\"versions_behind\":2,\"on_stale\":\"mark\"}}");
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
    assert_int_equal(task->max_format_errors, 15);
    assert_int_equal(task->max_repeats, 16);
    assert_string_equal(task->on_repeat, "warn");
    assert_true(task->sampling.temperature == 0 && task->sampling.top_p == 0.5);
    assert_true(task->sampling.top_k == 40 && task->sampling.min_p == 0.25);
    assert_true(task->sampling.max_tokens == 7 && task->sampling.seed == 9);
    assert_string_equal(task->eval_command, "c");
    assert_string_equal(task->eval_reward_file, "r");
    assert_int_equal(task->eval_file_count, 1);
    assert_string_equal(task->eval_files[0].path, "/e");
    assert_memory_equal(task->eval_files[0].content, "z", 1);
    const struct task_limits limits = {1, 2, 3, 10, 4, 5, 14, 256, 16, 8, 9, 11, 12, 13};
    assert_memory_equal(&task->limits, &limits, offsetof(struct task_limits, versions_behind));
    assert_int_equal(task->limits.versions_behind, 2);
    assert_string_equal(task->limits.on_stale, "mark");
    assert_int_equal(task->samples, 8);
}

static void the_agents_kind_and_tools_follow_from_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *agent, *kind, *tools;
        bool needs_engine;
    } rows[] = {
        {"{}", "chat", "", true},
        {"{},\"eval\":{\"kind\":\"math\",\"answer\":\"2\"}", "chat", "", true},
        {"{},\"setup\":[\"ls\"]", "bash", "bash ", true},
        {"{},\"files\":{\"f\":\"x\"}", "bash", "bash ", true},
        {"{},\"image\":\"/images/a.sif\"", "bash", "bash ", true},
        {"{},\"eval\":{\"kind\":\"command\",\"command\":\"true\"}", "bash", "bash ", true},
        {"{\"tools\":[\"bash\"]}", "bash", "bash ", true},
        {"{\"tools\":[]}", "chat", "", true},
        {"{\"tools\":[\"edit\",\"bash\"]}", "tools", "edit bash ", true},
        {"{\"tools\":[\"ipython\"]}", "tools", "ipython ", true},
        {"{\"kind\":\"tools\"}", "tools", "bash edit submit ", true},
        {"{\"kind\":\"tools\",\"tools\":[\"bash\"]}", "tools", "bash ", true},
        {"{\"kind\":\"chat\"}", "chat", "", true},
        {"{\"kind\":\"bash\"}", "bash", "bash ", true},
        {"{\"kind\":\"none\",\"tools\":[]}", "none", "", false},
        {"{\"script\":[{\"tool\":\"edit\",\"arguments\":{}},"
         "{\"tool\":\"bash\",\"arguments\":{\"command\":\"ls\"}},"
         "{\"tool\":\"edit\",\"arguments\":{\"a\":[1]}}]}",
         "replay", "edit bash ", false},
        {"{\"kind\":\"replay\",\"tools\":[\"bash\",\"think\"],"
         "\"script\":[{\"tool\":\"think\",\"arguments\":{}}]}",
         "replay", "bash think ", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER member = {0};
        AUTO_BUFFER tools = {0};
        buffer_printf(&member, "\"agent\":%s", rows[i].agent);
        assert_true(buffer_append(&member, "", 1));
        AUTO_TASK task = parse_member((const char *)member.data);
        assert_string_equal(task->agent_kind, rows[i].kind);
        assert_int_equal(task_needs_engine(task), rows[i].needs_engine);
        for (size_t k = 0; k < task->tool_count; k++)
            buffer_printf(&tools, "%s ", task->tools[k]);
        assert_true(slice_is(buffer_peek(&tools), rows[i].tools));
    }
}

static void grants_of_the_network_are_names(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"network\":[\"pip\",\"a-1\"],\"eval\":{\"kind\":\"command\","
                                  "\"command\":\"c\",\"network\":[\"db\"]}");
    assert_int_equal(task->grant_count, 2);
    assert_string_equal(task->grants[0], "pip");
    assert_string_equal(task->grants[1], "a-1");
    assert_int_equal(task->eval_grant_count, 1);
    assert_string_equal(task->eval_grants[0], "db");
    static const char *const bad[] = {
        "", "P", "1a", "-a", "a/b", "..", "a_b", "tcp:1.1.1.1:80", "abcdefghijklmnopqrstuvwxyz0123456"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char member[128];
        snprintf(member, sizeof(member), "\"network\":[\"pip\",\"%s\"]", bad[i]);
        assert_member_refused(member, REFUSAL_BAD_NAME, "network[1]");
    }
    assert_member_refused("\"network\":[\"a\",\"a\"]", REFUSAL_BAD_TASK, "network[1]");
    assert_member_refused("\"network\":[1]", REFUSAL_WRONG_TYPE, "network[0]");
    assert_member_refused("\"eval\":{\"network\":[\"a\"]}", REFUSAL_BAD_TASK, "eval.network");
    assert_member_refused("\"eval\":{\"kind\":\"math\",\"answer\":\"1\",\"trust\":\"image\"}", REFUSAL_BAD_TASK,
                          "eval.trust");
}

static void an_agents_kind_that_does_not_fit_its_tools_or_script_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *agent;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {"{\"kind\":\"bash\",\"tools\":[]}", REFUSAL_BAD_TASK, "agent.tools"},
        {"{\"kind\":\"bash\",\"tools\":[\"bash\",\"edit\"]}", REFUSAL_BAD_TASK, "agent.tools"},
        {"{\"kind\":\"chat\",\"tools\":[\"bash\"]}", REFUSAL_BAD_TASK, "agent.tools"},
        {"{\"kind\":\"tools\",\"tools\":[]}", REFUSAL_BAD_TASK, "agent.tools"},
        {"{\"tools\":[\"bash\",\"bash\"]}", REFUSAL_BAD_TASK, "agent.tools[1]"},
        {"{\"kind\":\"replay\"}", REFUSAL_MISSING_FIELD, "agent.script"},
        {"{\"script\":[]}", REFUSAL_TOO_SMALL, "agent.script"},
        {"{\"kind\":\"bash\",\"script\":[{\"tool\":\"bash\",\"arguments\":{}}]}", REFUSAL_BAD_TASK, "agent.script"},
        {"{\"script\":[{\"tool\":\"ham mer\",\"arguments\":{}}]}", REFUSAL_BAD_NAME, "agent.script[0].tool"},
        {"{\"kind\":\"bash\",\"engine\":\"none\"}", REFUSAL_BAD_TASK, "agent.engine"},
        {"{\"script\":[{\"tool\":\"bash\",\"arguments\":[]}]}", REFUSAL_WRONG_TYPE, "agent.script[0].arguments"},
        {"{\"script\":[{\"tool\":\"bash\"}]}", REFUSAL_MISSING_FIELD, "agent.script[0].arguments"},
        {"{\"form\":\"llama\"}", REFUSAL_BAD_TASK, "agent.form"},
        {"{\"kind\":\"harness\"}", REFUSAL_MISSING_FIELD, "agent.command"},
        {"{\"kind\":\"harness\",\"harness\":\"codex\",\"command\":\"true\"}", REFUSAL_BAD_TASK, "agent.command"},
        {"{\"command\":\"true\"}", REFUSAL_BAD_TASK, "agent.command"},
        {"{\"harness\":\"codex\"}", REFUSAL_BAD_TASK, "agent.harness"},
        {"{\"train\":[\"main\"]}", REFUSAL_BAD_TASK, "agent.train"},
        {"{\"train\":[\"title\"]}", REFUSAL_BAD_TASK, "agent.train[0]"},
        {"{\"kind\":\"chat\",\"form\":\"hermes\"}", REFUSAL_BAD_TASK, "agent.form"},
        {"{\"kind\":\"bash\",\"tool_role\":\"tool\"}", REFUSAL_BAD_TASK, "agent.tool_role"},
        {"{\"recorded\":[{\"role\":\"user\",\"content\":\"x\"}]}", REFUSAL_BAD_TASK, "agent.recorded"},
        {"{\"recorded\":[{\"role\":\"tool\",\"content\":\"\",\"tool\":\"edit: ls\"}]}", REFUSAL_BAD_TASK,
         "agent.recorded[0].tool"},
        {"{\"recorded\":[{\"role\":\"tool\",\"content\":\"\",\"tool\":\"a saw: {}\"}]}", REFUSAL_BAD_NAME,
         "agent.recorded[0].tool"},
        {"{\"script\":[{\"tool\":\"bash\",\"arguments\":{}}],\"recorded\":[]}", REFUSAL_AMBIGUOUS, "agent.recorded"},
        {"{\"tools\":[\"edit\"],\"script\":[{\"tool\":\"bash\",\"arguments\":{}}]}", REFUSAL_BAD_TASK,
         "agent.script[0].tool"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER member = {0};
        buffer_printf(&member, "\"agent\":%s", rows[i].agent);
        assert_true(buffer_append(&member, "", 1));
        assert_member_refused((const char *)member.data, rows[i].reason, rows[i].field);
    }
}

/* "ROLE:NAME ..." of what a stage needs. */
static void assert_needs(const struct task *task, enum stage stage, const char *wanted)
{
    struct task_need needs[TASK_NEEDS_MAX];
    char said[512] = "";
    size_t count = task_needs(task, stage, needs);
    for (size_t i = 0; i < count; i++)
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s:%s", i ? " " : "",
                 handler_role_wire(needs[i].role), needs[i].name);
    assert_string_equal(said, wanted);
}

static void assert_shown(const char *members, const char *wanted)
{
    AUTO_TASK task = parse_member(members);
    char said[16] = "";
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (task_is_shown(task, (enum stage)stage))
            snprintf(said + strlen(said), sizeof(said) - strlen(said), " %s", stage_wire((enum stage)stage));
    assert_string_equal(said, wanted);
}

static void a_task_is_shown_where_code_of_others_may_ask_for_it(void **state)
{
    (void)state;
    assert_shown("\"kind\":\"noop\"", "");
    assert_shown("\"eval\":{\"kind\":\"math\",\"answer\":\"2\"}", "");
    assert_shown("\"agent\":{\"kind\":\"tools\",\"tools\":[\"bash\",\"edit\"]},\"eval\":{\"kind\":\"none\"}", "");
    assert_shown("\"eval\":{\"kind\":\"command\",\"command\":\"true\"}", " eval");
    assert_shown("\"eval\":{\"kind\":\"command\",\"command\":\"true\",\"sandbox\":\"agent\"}", " run");
    assert_shown("\"eval\":{\"kind\":\"grade\"}", " eval");
    assert_shown("\"agent\":{\"kind\":\"mine\"},\"eval\":{\"kind\":\"none\"}", " run");
    assert_shown("\"agent\":{\"tools\":[\"look.up\"]},\"eval\":{\"kind\":\"none\"}", " run");
    assert_shown("\"agent\":{\"kind\":\"session\"},\"eval\":{\"kind\":\"posted\"}", " run");
    assert_shown("\"agent\":{\"kind\":\"harness\",\"command\":\"x\"},\"eval\":{\"kind\":\"math\",\"answer\":\"2\"}",
                 " run");
}

static void names_that_are_not_built_in_are_what_handlers_must_offer(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"agent\":{\"kind\":\"mine\",\"tools\":[\"bash\",\"look.up\"],\"engine\":\"none\","
                                  "\"config\":{\"depth\":3}},\"eval\":{\"kind\":\"grade\",\"answer\":\"2\"}");
    assert_needs(task, STAGE_INIT, "");
    assert_needs(task, STAGE_RUN, "agent:mine tool:look.up");
    assert_needs(task, STAGE_EVAL, "evaluator:grade");
    assert_false(task_needs_engine(task));
    AUTO_TASK own = parse_member("\"handlers\":[{\"name\":\"grade\",\"command\":\"python3 /eval/grade.py\"}],"
                                 "\"agent\":{\"tools\":[\"look.up\"]},\"eval\":{\"kind\":\"grade\"}");
    assert_string_equal(own->agent_kind, "tools");
    assert_needs(own, STAGE_RUN, "tool:look.up");
    assert_needs(own, STAGE_EVAL, "");
    assert_string_equal(task_handler_find(own, "grade")->command, "python3 /eval/grade.py");
    assert_true(task_needs_engine(own));
    AUTO_TASK built_in = parse_member("\"agent\":{\"kind\":\"tools\"},\"eval\":{\"kind\":\"math\",\"answer\":\"2\"}");
    assert_needs(built_in, STAGE_RUN, "");
    assert_needs(built_in, STAGE_EVAL, "");
}

static void a_trajectorys_messages_become_the_script(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"agent\":{\"recorded\":[{\"role\":\"user\",\"content\":\"go\"},"
                                  "{\"role\":\"tool\",\"content\":\"hi\",\"tool\":\"edit: {\\\"path\\\": \\\"a: "
                                  "b\\\"}\",\"exit_status\":1},"
                                  "{\"role\":\"tool\",\"content\":\"\",\"tool\":\"bash: echo 'a: b'\"},"
                                  "{\"role\":\"tool\",\"content\":\"\",\"tool\":\"bash: 7\"}]}");
    static const char *const arguments[] = {"{\"path\":\"a: b\"}", "{\"command\":\"echo 'a: b'\"}",
                                            "{\"command\":\"7\"}"};
    assert_string_equal(task->agent_kind, "replay");
    assert_int_equal(task->script_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(task->script[i].arguments, arguments[i]);
    assert_string_equal(task->script[0].tool, "edit");
    assert_string_equal(task->script[0].result, "hi");
    assert_int_equal(task->script[0].status, 1);
    assert_int_equal(task->script[1].status, -1);
    assert_int_equal(task->tool_count, 2);
}

static void a_scripts_arguments_are_kept_as_json_of_few_levels(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"agent\":{\"script\":[{\"tool\":\"bash\",\"arguments\": "
                                  "{ \"command\": \"ls\", \"n\": [1, {}] }}]}");
    assert_int_equal(task->script_count, 1);
    assert_string_equal(task->script[0].tool, "bash");
    assert_string_equal(task->script[0].arguments, "{\"command\":\"ls\",\"n\":[1,{}]}");
    for (int levels = 32; levels <= 33; levels++) {
        AUTO_BUFFER member = {0};
        buffer_append_str(&member, "\"agent\":{\"script\":[{\"tool\":\"bash\",\"arguments\":{\"a\":");
        for (int i = 1; i < levels; i++)
            buffer_append_str(&member, "[");
        for (int i = 1; i < levels; i++)
            buffer_append_str(&member, "]");
        buffer_append_str(&member, "}}]}");
        assert_true(buffer_append(&member, "", 1));
        if (levels == 33) {
            assert_member_refused((const char *)member.data, REFUSAL_TOO_LARGE, "agent.script[0].arguments");
            continue;
        }
        AUTO_TASK deep = parse_member((const char *)member.data);
        assert_non_null(deep);
    }
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
    assert_member_refused("\"files\":[{\"path\":\"a\",\"text\":\"\"},{\"name\":\"a\"}]", REFUSAL_UNKNOWN_FIELD,
                          "files[1].name");
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
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"user\"}]}", REFUSAL_MISSING_FIELD, "messages[0].content");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"content\":\"\"}]}", REFUSAL_MISSING_FIELD, "messages[0].role");
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
    assert_member_refused("\"files\":[{\"path\":\"a\",\"text\":\"\",\"base64\":\"\"}]", REFUSAL_AMBIGUOUS,
                          "files[0].base64");
}

static void what_belongs_to_another_evaluator_is_refused(void **state)
{
    (void)state;
    assert_member_refused("\"eval\":{\"command\":\"c\"}", REFUSAL_BAD_TASK, "eval.command");
    assert_member_refused("\"eval\":{\"kind\":\"math\",\"answer\":\"2\",\"reward_file\":\"r\"}", REFUSAL_BAD_TASK,
                          "eval.reward_file");
    assert_member_refused("\"eval\":{\"files\":{\"a\":\"\"}}", REFUSAL_BAD_TASK, "eval.files");
    assert_member_refused("\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"answer\":\"2\"}", REFUSAL_BAD_TASK,
                          "eval.answer");
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
        {"\"agent\":{\"kind\":\"ro bot\"}", REFUSAL_BAD_NAME, "agent.kind"},
        {"\"agent\":{\"tools\":[\"bash\",\"-python\"]}", REFUSAL_BAD_NAME, "agent.tools[1]"},
        {"\"eval\":{\"kind\":\"2judges\"}", REFUSAL_BAD_NAME, "eval.kind"},
        {"\"eval\":{\"kind\":\"judge\",\"command\":\"c\"}", REFUSAL_BAD_TASK, "eval.command"},
        {"\"eval\":{\"kind\":\"judge\",\"config\":[]}", REFUSAL_WRONG_TYPE, "eval.config"},
        {"\"handlers\":[{\"name\":\"a\",\"command\":\"c\"},{\"name\":\"a\",\"command\":\"c\"}]", REFUSAL_BAD_TASK,
         "handlers[1]"},
        {"\"handlers\":[{\"name\":\"a\"}]", REFUSAL_MISSING_FIELD, "handlers[0].command"},
        {"\"eval\":{\"kind\":\"code\"}", REFUSAL_MISSING_FIELD, "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{}}", REFUSAL_MISSING_FIELD, "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"inputs\":[\"\"],\"outputs\":[]}}", REFUSAL_BAD_TASK, "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"inputs\":[],\"outputs\":[]}}", REFUSAL_TOO_SMALL, "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"inputs\":[7],\"outputs\":[\"\"]}}", REFUSAL_WRONG_TYPE,
         "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"asserts\":[7]}}", REFUSAL_WRONG_TYPE, "eval.tests.asserts"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"asserts\":[\"\"],\"fn_name\":\"f\"}}", REFUSAL_AMBIGUOUS,
         "eval.tests"},
        {"\"eval\":{\"kind\":\"code\",\"tests\":{\"asserts\":[\"\"],\"fn\":\"f\"}}", REFUSAL_UNKNOWN_FIELD,
         "eval.tests"},
        {"\"eval\":{\"kind\":\"math\",\"answer\":\"1\",\"checker\":\"exact\"}", REFUSAL_BAD_TASK, "eval.checker"},
        {"\"image\":\"debian:12\"", REFUSAL_BAD_TASK, "image"},
        {"\"image\":\"/a/../b\"", REFUSAL_BAD_TASK, "image"},
        {"\"image\":\"docker://debian:12\"", REFUSAL_BAD_TASK, "image"},
        {"\"image\":\"images/a.sif\"", REFUSAL_BAD_TASK, "image"},
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
        {"\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"reward_file\":\"../r\"}", REFUSAL_BAD_TASK,
         "eval.reward_file"},
        {"\"sampling\":{\"seed\":1.0}", REFUSAL_WRONG_TYPE, "sampling.seed"},
        {"\"sampling\":{\"temperature\":-0.5}", REFUSAL_TOO_SMALL, "sampling.temperature"},
        {"\"sampling\":{\"top_p\":1.5}", REFUSAL_TOO_LARGE, "sampling.top_p"},
        {"\"metadata\":[]", REFUSAL_WRONG_TYPE, "metadata"},
        {"\"shaping\":{\"buffer_tokens\":1}", REFUSAL_BAD_TASK, "shaping.buffer_tokens"},
        {"\"shaping\":{\"max_tokens\":1}", REFUSAL_MISSING_FIELD, "shaping.buffer_tokens"},
        {"\"shaping\":{\"max_tokens\":1,\"buffer_tokens\":2}", REFUSAL_TOO_LARGE, "shaping.buffer_tokens"},
        {"\"shaping\":{\"max_tokens\":1,\"buffer_tokens\":1}", REFUSAL_BAD_TASK, "shaping.max_tokens"},
        {"\"shaping\":{\"penalty\":-1}", REFUSAL_TOO_SMALL, "shaping.penalty"},
        {"\"shaping\":{\"truncated\":\"mask\"}", REFUSAL_BAD_TASK, "shaping.truncated"},
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
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"assistant\",\"content\":\"c\"}]}", REFUSAL_BAD_TASK,
                   "messages");
    assert_refused("{\"task\":\"t\",\"messages\":[{\"role\":\"tool\",\"content\":\"c\"}]}", REFUSAL_BAD_TASK,
                   "messages[0].role");
}

static void a_built_image_is_named_by_what_it_stands_on(void **state)
{
    (void)state;
    static const struct {
        const char *members, *name;
    } rows[] = {
        {"\"samples\":1", "host"},
        {"\"image\":\"/images/a\"", "/images/a"},
        {"\"build\":{\"dockerfile\":\"FROM debian:12\\nRUN true\\n\"}", "debian:12"},
        {"\"build\":{\"dockerfile\":\"# FROM a\\nARG V=3\\r\\n  from\\t--platform=$X  py:${V} AS one\\r\\nFROM one\"}",
         "py:${V}"},
        {"\"image\":\"/images/a\",\"build\":{\"dockerfile\":\"FROM debian:12\"}", "/images/a"},
        {"\"build\":{\"dockerfile\":\"FROM \"}", "host"},
        {"\"build\":{\"dockerfile\":\"FROM --platform=x\"}", "host"},
        {"\"build\":{\"dockerfile\":\"FROMAGE x\"}", "host"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER json = {0};
        char name[32];
        buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",%s}", rows[i].members);
        struct refusal no = {0};
        AUTO_TASK task = task_parse(buffer_peek(&json), &no);
        if (!task)
            fail_msg("%s: %s", rows[i].members, no.text);
        task_image_name(task, name, sizeof(name));
        assert_string_equal(name, rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_task_gets_the_documented_defaults),
        cmocka_unit_test(a_judge_has_more_time_unless_the_task_says),
        cmocka_unit_test(every_field_reaches_its_member),
        cmocka_unit_test(the_agents_kind_and_tools_follow_from_each_other),
        cmocka_unit_test(grants_of_the_network_are_names),
        cmocka_unit_test(an_agents_kind_that_does_not_fit_its_tools_or_script_is_refused),
        cmocka_unit_test(a_task_is_shown_where_code_of_others_may_ask_for_it),
        cmocka_unit_test(names_that_are_not_built_in_are_what_handlers_must_offer),
        cmocka_unit_test(a_trajectorys_messages_become_the_script),
        cmocka_unit_test(a_scripts_arguments_are_kept_as_json_of_few_levels),
        cmocka_unit_test(a_task_that_samples_nothing_needs_no_prompt_and_no_engine),
        cmocka_unit_test(a_strange_field_is_named_by_its_path),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(one_of_two_is_not_both),
        cmocka_unit_test(what_belongs_to_another_evaluator_is_refused),
        cmocka_unit_test(rules_of_single_fields_hold),
        cmocka_unit_test(a_built_image_is_named_by_what_it_stands_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
