/* SGLang's dialect and that of plain OpenAI servers, against scripted servers that speak them. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {
    .temperature = 1, .top_p = 0.25, .min_p = 0.125, .top_k = 3, .max_tokens = 64, .seed = 7};

/* The last request to a route; borrowed from the log. */
static const json_t *find_request(const json_t *log, const char *path)
{
    const json_t *line, *found = NULL;
    size_t i;
    json_array_foreach(log, i, line) if (strcmp(json_string_value(json_object_get(line, "path")), path) == 0)
        found = json_object_get(line, "request");
    return found;
}

/* ---- SGLang ------------------------------------------------------------------------------------ */

static void sglang_is_given_ids_and_tells_what_it_sampled(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'sglang', 'version': 'v7', 'rules': [{'reply': 'h\\u00e9'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    assert_sampled(&asking, "h\xc3\xa9", "v7");
    assert_string_equal(engine_logprobs_mode(world_engine(&world)), "processed");
    generation_finish(&asking.generation);
    world_close(&world);
}

static void every_setting_that_shapes_the_distribution_is_sent_to_sglang(void **state)
{
    (void)state;
    static const char *const said[] = {
        "\"max_new_tokens\":64", "\"top_p\":0.25",           "\"min_p\":0.125",         "\"top_k\":3",
        "\"sampling_seed\":8",   "\"repetition_penalty\":1", "\"presence_penalty\":0",  "\"frequency_penalty\":0",
        "\"ignore_eos\":false",  "\"return_logprob\":true",  "\"stop_token_ids\":[257]"};
    world_open(&world, "{'dialect': 'sglang'}", NULL);
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    json_t *log = world_log(&world);
    AUTO_FREE char *sent = json_dumps(find_request(log, "/generate"), JSON_COMPACT);
    for (size_t i = 0; i < COUNT(said); i++)
        if (!strstr(sent, said[i]))
            fail_msg("%s is not in %s", said[i], sent);
    json_decref(log);
    generation_finish(&asking.generation);
    world_close(&world);
}

static void every_fault_of_sglangs_answers_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int expected;
        const char *words;
    } faults[] = {
        {"sgl_no_entries", -EPROTO, "no output_token_logprobs"},
        {"sgl_one_less", -EPROTO, "counts"},
        {"sgl_text_for_id", -EPROTO, "is not an id"},
        {"sgl_null", -EPROTO, "no log-probability for token 0"},
        {"sgl_positive", -EPROTO, "is not a log-probability"},
        {"sgl_prompt", -EPROTO, "read a prompt of 1 tokens"},
        {"sgl_aborted", -EAGAIN, "aborted the call"},
        {"sgl_too_many", -EPROTO, "at most 64 were asked for"},
        {"sgl_no_meta", -EPROTO, "no meta_info"},
        {"sgl_other_text", -EPROTO, "text is not what its ids say"},
        {"not_an_object", -EPROTO, "no meta_info"},
        {"garbage", -EPROTO, "the JSON is broken"},
    };
    AUTO_BUFFER script = {0};
    buffer_append_str(&script, "{'dialect': 'sglang', 'rules': [");
    for (size_t i = 0; i < COUNT(faults); i++)
        buffer_printf(&script, "%s{'if': '%s!', 'fault': '%s'}", i ? ", " : "", faults[i].name, faults[i].name);
    buffer_append_str(&script, "]}");
    AUTO_FREE char *text = buffer_take_str(&script);
    world_open(&world, text, NULL);
    struct asking askings[COUNT(faults)];
    char users[COUNT(faults)][32];
    for (size_t i = 0; i < COUNT(faults); i++) {
        snprintf(users[i], sizeof(users[i]), "%s!", faults[i].name);
        askings[i] = (struct asking){.user = users[i], .expected = faults[i].expected, .words = faults[i].words};
    }
    world_run(&world, ask, askings, sizeof(*askings), COUNT(faults));
    for (size_t i = 0; i < COUNT(faults); i++) {
        assert_answered(&askings[i]);
        generation_finish(&askings[i].generation);
    }
    world_close(&world);
}

static void the_end_tokens_name_is_no_part_of_what_was_said(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_end_in_text'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    assert_sampled(&asking, "ok", "");
    generation_finish(&asking.generation);
    world_close(&world);
}

static void versions_that_changed_within_a_turn_are_all_named(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_versions'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    assert_string_equal(asking.generation.version, "v1+v2");
    generation_finish(&asking.generation);
    world_close(&world);
}

static void an_sglang_without_templates_by_http_is_refused_and_told_what_would_do(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "{'dialect': 'sglang', 'tokenizes_messages': false, 'lacks': ['/model_info']}",
        "{'dialect': 'sglang', 'lacks': ['/tokenize']}"};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        world_open(&world, scripts[i], NULL);
        struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "speaks no dialect"};
        ask_one(&asking);
        assert_non_null(strstr(asking.fail.text, "tokenizer and chat template"));
        world_close(&world);
    }
}

static bool log_says(const char *path, const char *answer)
{
    json_t *log = world_log(fiber_world), *line;
    bool is_there = false;
    size_t i;
    json_array_foreach(log, i, line)
    {
        const char *said = json_string_value(json_object_get(line, "answer"));
        is_there |= strcmp(json_string_value(json_object_get(line, "path")), path) == 0 &&
                    (!answer || (said && strcmp(said, answer) == 0));
    }
    json_decref(log);
    return is_there;
}

static void await_log(const char *path, const char *answer)
{
    for (int i = 0; i < 3000 && !log_says(path, answer); i++)
        assert_int_equal(await_sleep(10), 0);
    assert_true(log_says(path, answer));
}

static void cancel_when_it_hangs(void *arg)
{
    struct asking *asking = arg;
    await_log("/generate", "hang");
    fiber_cancel(asking->fiber);
    await_log("/generate", "gone");
    await_log("/abort_request", NULL);
}

static void a_cancelled_call_is_aborted_by_its_name_and_by_closing(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'hang'}]}", NULL);
    struct asking asking = {.user = "hi", .expected = -ECANCELED};
    fiber_world = &world;
    assert_non_null(fiber_start(world.loop, ask, fiber_ended, &asking));
    assert_non_null(fiber_start(world.loop, cancel_when_it_hangs, fiber_ended, &asking));
    world.running = 2;
    loop_run(world.loop);
    assert_answered(&asking);
    json_t *log = world_log(&world);
    const json_t *call = find_request(log, "/generate"), *abort = find_request(log, "/abort_request");
    const char *rid = json_string_value(json_object_get(call, "rid"));
    assert_int_equal(strlen(rid), strlen("sluice") + 32);
    assert_string_equal(json_string_value(json_object_get(abort, "rid")), rid);
    assert_true(json_is_false(json_object_get(abort, "abort_all")));
    json_decref(log);
    world_close(&world);
}

/* ---- others ------------------------------------------------------------------------------------ */

static void a_plain_server_that_tells_ids_is_as_good_as_any(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'yes'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    assert_sampled(&asking, "yes", "");
    assert_string_equal(world_engine(&world)->dialect->name, "openai");
    generation_finish(&asking.generation);
    world_close(&world);
}

static void a_plain_server_that_cannot_be_exact_is_refused_and_told_what_would_do(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } servers[] = {
        {"{'dialect': 'openai', 'ids': false}", "return_token_ids"},
        {"{'dialect': 'openai', 'lacks': ['/tokenize']}", "does not offer its tokenizer"},
        {"{'dialect': 'openai', 'lacks': ['/v1/completions']}", "return_token_ids"},
        {"{'dialect': 'openai', 'context': 0}", "max_model_len"},
    };
    for (size_t i = 0; i < COUNT(servers); i++) {
        world_open(&world, servers[i].script, NULL);
        struct asking asking = {.user = "hi", .expected = -EPROTO, .words = servers[i].words};
        ask_one(&asking);
        assert_non_null(strstr(asking.fail.text, "would do"));
        world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sglang_is_given_ids_and_tells_what_it_sampled),
        cmocka_unit_test(every_setting_that_shapes_the_distribution_is_sent_to_sglang),
        cmocka_unit_test(every_fault_of_sglangs_answers_is_told),
        cmocka_unit_test(the_end_tokens_name_is_no_part_of_what_was_said),
        cmocka_unit_test(versions_that_changed_within_a_turn_are_all_named),
        cmocka_unit_test(an_sglang_without_templates_by_http_is_refused_and_told_what_would_do),
        cmocka_unit_test(a_cancelled_call_is_aborted_by_its_name_and_by_closing),
        cmocka_unit_test(a_plain_server_that_tells_ids_is_as_good_as_any),
        cmocka_unit_test(a_plain_server_that_cannot_be_exact_is_refused_and_told_what_would_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
