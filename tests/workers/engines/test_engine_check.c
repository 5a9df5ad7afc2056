/* The checks of an engine: all pass on a good one, and each double that breaks a rule is found out. */
#include "tests/workers/engines/real_engine.h"

#include "workers/engines/check/check.h"

static struct world world;

/* What the checks said: {"url", "status", "checks": [...]}. The caller's. */
static json_t *check(const char *url, enum check_status expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    enum check_status status = engine_check(url, NULL, true, out);
    fclose(out);
    json_t *report = json_loads(text, 0, NULL);
    assert_non_null(report);
    if (status != expected)
        fail_msg("status %d: %s", status, text);
    assert_int_equal(json_integer_value(json_object_get(report, "status")), status);
    free(text);
    return report;
}

static const json_t *result_of(const json_t *report, const char *name)
{
    const json_t *result;
    size_t i;
    json_array_foreach(json_object_get(report, "checks"), i,
                       result) if (strcmp(json_string_value(json_object_get(result, "check")), name) ==
                                   0) return result;
    return NULL;
}

static void assert_verdict(const json_t *report, const char *name, const char *verdict, const char *words)
{
    const json_t *result = result_of(report, name);
    const char *said = json_string_value(json_object_get(result, "verdict"));
    const char *text = json_string_value(json_object_get(result, "text"));
    if (!said || strcmp(said, verdict) != 0 || (words && !strstr(text, words)))
        fail_msg("%s: %s (%s), not %s", name, said ? said : "not made", text ? text : "", verdict);
}

#define HANGS "'rules': [{'tokens': 4096, 'fault': 'hang'}]"

static void a_good_engine_passes_all(void **state)
{
    (void)state;
    static const struct {
        const char *script, *not_offered[4];
    } engines[] = {
        {"{'context': 8192, " HANGS "}", {"version"}},
        {"{'dialect': 'vllm', 'context': 8192, 'version': 'v7', " HANGS "}", {"cancel"}},
        {"{'dialect': 'sglang', 'context': 8192, 'version': 'v7'}", {"cancel"}},
        {"{'dialect': 'openai', 'context': 8192}", {"cancel", "version", "scores"}},
        {"{'dialect': 'openai', 'context': 8192, 'cleans': true}", {"cancel", "version", "scores", "text"}},
    };
    for (size_t e = 0; e < COUNT(engines); e++) {
        world_open(&world, engines[e].script, NULL);
        json_t *report = check(world.url, ENGINE_CHECK_STATUS_WELL);
        for (int i = 0; i < ENGINE_CHECK_COUNT; i++) {
            const char *name = check_word((enum check_name)i);
            bool is_offered = strcmp(name, "length") != 0; /* a scripted reply is short */
            for (size_t n = 0; n < 4 && engines[e].not_offered[n]; n++)
                is_offered &= strcmp(name, engines[e].not_offered[n]) != 0;
            if (is_offered)
                assert_verdict(report, name, "pass", NULL);
        }
        json_decref(report);
        world_close(&world);
    }
}

/* One rule broken, and which check says so. */
static const struct {
    const char *script, *check, *words;
} doubles[] = {
    {"{'breaks': ['ids'], 'context': 8192}", "ids", "HELLO"},
    {"{'breaks': ['specials'], 'context': 8192}", "specials", "no token of a rendered prompt"},
    {"{'breaks': ['specials_inside'], 'context': 8192}", "specials", "becomes the special token"},
    {"{'template': 'subtle', 'context': 8192}", "bridge", "comes out in other tokens"},
    {"{'context': 8192, 'rules': [{'tokens': 256, 'fault': 'no_end'}]}", "stop", "plain text"},
    {"{'context': 8192, 'rules': [{'tokens': 3, 'fault': 'too_many'}]}", "length", "at most 3"},
    {"{'context': 8192, 'rules': [{'tokens': 256, 'fault': 'no_entries'}]}", "stop", "log-probability"},
    {"{'context': 8192, 'rules': [{'tokens': 256, 'fault': 'other_text'}]}", "stop", "not what its ids say"},
    {"{'context': 8192, 'breaks': ['scores']}", "scores", "nats apart"},
    {"{'dialect': 'vllm', 'context': 8192, 'breaks': ['scores']}", "scores", "nats apart"},
    {"{'context': 512, 'breaks': ['too_long']}", "too_long", "are the limit"},
    {"{'dialect': 'vllm', 'context': 512, 'breaks': ['too_long']}", "too_long", "are the limit"},
    {"{'context': 8192, 'breaks': ['cancel'], " HANGS "}", "cancel", "still in the engine's hands"},
};

static void a_double_that_breaks_a_rule_is_found_out_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(doubles); i++) {
        world_open(&world, doubles[i].script, NULL);
        json_t *report = check(world.url, ENGINE_CHECK_STATUS_FAILED);
        assert_verdict(report, doubles[i].check, "fail", doubles[i].words);
        json_decref(report);
        world_close(&world);
    }
}

static void who_cannot_be_exact_or_is_not_there_is_no_engine(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'ids': false}", NULL);
    json_t *report = check(world.url, ENGINE_CHECK_STATUS_NONE);
    assert_verdict(report, "dialect", "fail", "would do");
    assert_null(result_of(report, "context"));
    json_decref(report);
    child_stop(&world.pid);
    report = check(world.url, ENGINE_CHECK_STATUS_NONE);
    assert_verdict(report, "dialect", "fail", NULL);
    json_decref(report);
    world_close(&world);
}

static void a_call_given_up_is_seen_to_leave_the_engine(void **state)
{
    (void)state;
    world_open(&world, "{'context': 8192, " HANGS "}", NULL);
    json_t *report = check(world.url, ENGINE_CHECK_STATUS_WELL);
    assert_verdict(report, "cancel", "pass", "gone");
    json_decref(report);
    world_close(&world);
}

/* ---- the real server --------------------------------------------------------------------- */

static void the_real_server_passes_all(void **state)
{
    (void)state;
    struct real_engine server = {0};
    real_engine_or_skip();
    real_engine_start(&server, NULL);
    world_open(&world, NULL, NULL);
    world_run(&world, real_engine_await, &server, 0, 1);
    json_t *report = check(server.url, ENGINE_CHECK_STATUS_WELL);
    assert_verdict(report, "scores", "pass", NULL);
    assert_verdict(report, "cancel", "pass", NULL);
    assert_verdict(report, "too_long", "pass", "exceeds the available context size");
    json_decref(report);
    world_close(&world);
    real_engine_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_engine_passes_all),
        cmocka_unit_test(a_double_that_breaks_a_rule_is_found_out_by_name),
        cmocka_unit_test(who_cannot_be_exact_or_is_not_there_is_no_engine),
        cmocka_unit_test(a_call_given_up_is_seen_to_leave_the_engine),
        cmocka_unit_test(the_real_server_passes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
