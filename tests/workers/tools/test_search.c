/* The search tool against a server that answers as the services' documentation has it. */
#include "tests/workers/runtime/http_server.h"

#include <jansson.h>

#include "workers/tools/search/search_service.h"
#include "workers/tools/tool.h"
#include "workers/tools/toolbox.h"

#define KEY "tvly-secret"

static struct task_limits limits = {.command_s = 5, .output_bytes = 4096};

/* One call of the tool in a fiber, after which server and client end. */
struct search_call {
    const char *form, *key, *arguments;
    int64_t deadline_ms;
    bool is_cancelled;
    int code;
    struct fail fail;
    struct tool_result result;
};

static void run_call(void *arg)
{
    struct search_call *call = arg;
    char place[128];
    snprintf(place, sizeof(place), "%s=%s", call->form, base);
    struct search *search = search_create(http, place, call->key, &call->fail);
    assert_non_null(search);
    struct toolbox box = {.limits = &limits, .search = search};
    assert_int_equal(toolbox_add(&box, "search", &call->fail), 0);
    json_t *arguments = json_loads(call->arguments, 0, NULL);
    assert_non_null(arguments);
    if (call->deadline_ms)
        fiber_push_deadline(clock_ms() + call->deadline_ms);
    if (call->is_cancelled)
        fiber_cancel(fiber_current());
    call->code = toolbox_call(&box, "search", arguments, &call->result, &call->fail);
    json_decref(arguments);
    toolbox_close(&box);
    search_destroy(&search);
    assert_null(search);
}

static void http_gone(void *arg)
{
    (void)arg;
    fiber_cancel(acceptor);
    http_destroy(&http);
}

static void call_ended(void *arg)
{
    (void)arg;
    living = 0;
    loop_after(loop, 0, http_gone, NULL);
}

static void out_of_time(void *arg)
{
    (void)arg;
    fail_msg("not done within 20 seconds");
}

static void do_call(struct search_call *call)
{
    living = 1;
    struct loop_timer *bound = loop_after(loop, 20000, out_of_time, NULL);
    assert_non_null(fiber_start(loop, run_call, call_ended, call));
    loop_run(loop);
    loop_cancel(loop, &bound);
}

static void expect(struct search_call *call, bool is_error, const char *text)
{
    do_call(call);
    assert_int_equal(call->code, 0);
    if (strcmp(call->result.text, text) != 0 || call->result.is_error != is_error)
        fail_msg("%s", call->result.text);
    assert_null(strstr(call->result.text, KEY));
    tool_result_finish(&call->result);
}

/* ---- the services' forms ------------------------------------------------------------------ */

static const char tavily_answer[] =
    "{\"query\": \"who is\", \"follow_up_questions\": null, \"answer\": null, \"images\": [],"
    " \"results\": [{\"title\": \"Facts | Britannica\", \"url\": "
    "\"https://www.britannica.com/facts\","
    " \"content\": \"An Argentine\\nfootballer,\\u001b[31m  widely regarded\", \"score\": "
    "0.81025416,"
    " \"raw_content\": null, \"favicon\": \"https://britannica.com/favicon.png\"},"
    " {\"title\": null, \"url\": \"https://example.org/\", \"content\": \"\", \"score\": 0.5,"
    " \"raw_content\": null}, {\"title\": \"no address\"}, {\"title\": \"third\", \"url\":"
    " \"https://example.org/3\", \"content\": \"x\"}], \"auto_parameters\": {\"topic\": "
    "\"general\"},"
    " \"response_time\": \"1.67\", \"request_id\": \"123e4567-e89b-12d3-a456-426614174111\"}";

static void tavily_is_asked_by_post_with_its_key_in_a_header(void **state)
{
    (void)state;
    canned_status = "200 OK";
    canned_body = tavily_answer;
    struct search_call call = {
        .form = "tavily", .key = KEY, .arguments = "{\"query\": \"who is\", \"max_results\": 2}"};
    expect(&call, false,
           "1. Facts | Britannica\nhttps://www.britannica.com/facts\n"
           "An Argentine footballer, [31m widely regarded\n\n"
           "2. (no title)\nhttps://example.org/\n");
    assert_memory_equal(last_head, "POST /search HTTP/1.1\r\n", 23);
    assert_non_null(strstr(last_head, "\r\nAuthorization: Bearer " KEY));
    assert_non_null(strstr(last_head, "\r\nContent-Type: application/json"));
    assert_string_equal(last_body, "{\"query\":\"who is\",\"max_results\":2}");
}

static void searxng_is_asked_by_get_with_the_query_in_its_address(void **state)
{
    (void)state;
    canned_status = "200 OK";
    canned_body = "{\"query\": \"a\", \"number_of_results\": 0, \"results\": [{\"url\": "
                  "\"https://docs.searxng.org/\","
                  " \"title\": \"Welcome to SearXNG\", \"content\": \"Search without being tracked.\", "
                  "\"engine\":"
                  " \"duckduckgo\", \"parsed_url\": [\"https\", \"docs.searxng.org\", \"/\", \"\", \"\", "
                  "\"\"],"
                  " \"template\": \"default.html\", \"engines\": [\"duckduckgo\"], \"positions\": [1],"
                  " \"publishedDate\": null, \"score\": 1.0, \"category\": \"general\"}], \"answers\": [],"
                  " \"corrections\": [], \"infoboxes\": [], \"suggestions\": [\"x\"], "
                  "\"unresponsive_engines\": []}";
    struct search_call call = {.form = "searxng", .arguments = "{\"query\": \"a & b/\\u00e9?=#\"}"};
    expect(&call, false, "1. Welcome to SearXNG\nhttps://docs.searxng.org/\nSearch without being tracked.\n");
    assert_ptr_equal(strstr(last_head, "GET /search?format=json&q=a%20%26%20b%2F%C3%A9%3F%3D%23 HTTP/1.1\r\n"),
                     last_head);
    assert_null(strstr(last_head, "Authorization"));
}

static void an_address_may_have_a_path_and_end_as_people_write_it(void **state)
{
    (void)state;
    struct search_call call = {.form = "searxng", .arguments = "{\"query\": \"q\"}"};
    canned_status = "200 OK";
    canned_body = "{\"results\": []}";
    strcat(base, "/searx/search/");
    expect(&call, false, "Nothing was found.");
    assert_memory_equal(last_head, "GET /searx/search?format=json&q=q ", 33);
}

static void long_results_are_cut_each_and_all_together(void **state)
{
    (void)state;
    AUTO_BUFFER body = {0};
    buffer_append_str(&body, "{\"results\": [");
    for (int i = 0; i < 100; i++) {
        buffer_printf(&body, "%s{\"url\": \"https://example.org/%d\", \"title\": \"", i ? ", " : "", i);
        for (int k = 0; k < 300; k++)
            buffer_append_str(&body, "\\u00e9");
        buffer_append_str(&body, "\", \"content\": \"");
        for (int k = 0; k < 5000; k++)
            buffer_append_str(&body, "x");
        buffer_append_str(&body, "\"}");
    }
    buffer_append_str(&body, "]}");
    AUTO_FREE char *text = buffer_take_str(&body);
    canned_status = "200 OK";
    canned_body = text;
    struct search_call call = {.form = "searxng", .arguments = "{\"query\": \"q\", \"max_results\": 10}"};
    do_call(&call);
    assert_int_equal(call.code, 0);
    assert_true(call.result.len < limits.output_bytes + 100);
    assert_true(call.result.total > 10 * 1200 && call.result.total < 10 * 1400);
    assert_non_null(strstr(call.result.text, "bytes left out]"));
    assert_non_null(strstr(call.result.text, "xxx...\n"));
    tool_result_finish(&call.result);
}

/* ---- refusals and failures ---------------------------------------------------------------- */

static void what_goes_wrong_is_told_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *status, *body, *text;
    } rows[] = {
        {"401 Unauthorized", "{\"detail\": {\"error\": \"Unauthorized: missing or invalid API key.\"}}",
         "No results: the search refuses this worker (HTTP 401)."},
        {"403 Forbidden", "<html>", "No results: the search refuses this worker (HTTP 403)."},
        {"429 Too Many Requests", "", "No results: the search takes no more queries for now (HTTP 429)."},
        {"432 Limit", "{}", "No results: the search takes no more queries for now (HTTP 432)."},
        {"400 Bad Request", "{\"detail\": {\"error\": \"Query is too long.\\nMax 400.\"}}",
         "No results: the search failed (HTTP 400): Query is too long. Max 400.."},
        {"400 Bad Request", "{\"detail\": \"x\"}", "No results: the search failed (HTTP 400)."},
        {"500 Oops", "", "No results: the search failed (HTTP 500)."},
        {"302 Found", "", "No results: the search failed (HTTP 302)."},
        {"200 OK", "", "No results: the search gave no answer that can be read."},
        {"200 OK", "[]", "No results: the search gave no answer that can be read."},
        {"200 OK", "{\"results\": {}}", "No results: the search gave no answer that can be read."},
        {"200 OK", "{\"results\": [1, null, {\"url\": 7}]}", "Nothing was found."},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct search_call call = {.form = "tavily", .key = KEY, .arguments = "{\"query\": \"q\"}"};
        if (i > 0)
            assert_int_equal(set_up(NULL), 0);
        canned_status = rows[i].status;
        canned_body = rows[i].body;
        expect(&call, strncmp(rows[i].text, "No", 2) == 0 && rows[i].text[2] == ' ', rows[i].text);
        if (i + 1 < sizeof(rows) / sizeof(rows[0]))
            tear_down(NULL);
    }
}

static void an_answer_of_many_levels_or_bytes_is_not_read(void **state)
{
    (void)state;
    AUTO_BUFFER levels = {0};
    buffer_append_str(&levels, "{\"results\": [], \"more\": ");
    for (int i = 0; i < 100; i++)
        buffer_append_str(&levels, "[");
    for (int i = 0; i < 100; i++)
        buffer_append_str(&levels, "]");
    buffer_append_str(&levels, "}");
    AUTO_FREE char *deep_text = buffer_take_str(&levels);
    canned_status = "200 OK";
    canned_body = deep_text;
    struct search_call deep = {.form = "searxng", .arguments = "{\"query\": \"q\"}"};
    expect(&deep, true, "No results: the search gave no answer that can be read.");
    tear_down(NULL);
    assert_int_equal(set_up(NULL), 0);
    AUTO_FREE char *large_text = malloc(SEARCH_BODY_MAX + 2);
    memset(large_text, ' ', SEARCH_BODY_MAX + 1);
    large_text[SEARCH_BODY_MAX + 1] = '\0';
    canned_body = large_text;
    struct search_call large = {.form = "searxng", .arguments = "{\"query\": \"q\"}"};
    expect(&large, true, "No results: the search answered with too much.");
}

static void a_search_that_does_not_answer_ends_with_the_call_not_the_rollout(void **state)
{
    (void)state;
    canned_status = NULL; /* silence */
    limits.command_s = 1;
    struct search_call slow = {.form = "searxng", .arguments = "{\"query\": \"q\"}"};
    do_call(&slow);
    limits.command_s = 5;
    assert_int_equal(slow.code, 0);
    assert_true(slow.result.timed_out && slow.result.seconds < 3);
    assert_string_equal(slow.result.text, "No results: the search did not answer in time.");
    tool_result_finish(&slow.result);
}

static void a_search_that_is_not_there_is_told(void **state)
{
    (void)state;
    struct search_call nobody = {.form = "searxng", .arguments = "{\"query\": \"q\"}"};
    snprintf(base, sizeof(base), "http://127.0.0.1:1");
    expect(&nobody, true, "No results: the search cannot be reached.");
}

static void the_rollouts_own_time_is_no_answer(void **state)
{
    (void)state;
    canned_status = NULL;
    struct search_call late = {.form = "searxng", .arguments = "{\"query\": \"q\"}", .deadline_ms = 200};
    do_call(&late);
    assert_int_equal(late.code, -ETIMEDOUT);
}

static void a_cancelled_rollout_is_no_answer(void **state)
{
    (void)state;
    canned_status = "200 OK";
    canned_body = "{\"results\": []}";
    struct search_call cancelled = {.form = "searxng", .arguments = "{\"query\": \"q\"}", .is_cancelled = true};
    do_call(&cancelled);
    assert_int_equal(cancelled.code, -ECANCELED);
}

/* ---- settings ------------------------------------------------------------------------------ */

static void settings_are_refused_without_naming_the_key(void **state)
{
    (void)state;
    static const struct {
        const char *place, *key, *words;
    } rows[] = {
        {"google=https://x", NULL, "a search is tavily=URL or searxng=URL"},
        {"tavily", NULL, "a search is tavily=URL or searxng=URL"},
        {"tavily=https://api.tavily.com", NULL, "tavily wants a key"},
        {"tavily=ftp://x", KEY, "tavily=...: not an http or https address without user, query and fragment"},
        {"searxng=http://user:" KEY "@x", NULL,
         "searxng=...: not an http or https address without user, query and fragment"},
        {"searxng=http://x?a=b", NULL, "searxng=...: not an http or https address without user, query and fragment"},
        {"tavily=http://x", KEY "\r\nX: y", "the key of the search is not a word of 1 to 1024 characters"},
        {"tavily=http://x", "", "the key of the search is not a word of 1 to 1024 characters"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fail fail = {0};
        assert_int_equal(search_check(rows[i].place, rows[i].key, &fail), -EINVAL);
        assert_string_equal(fail.text, rows[i].words);
        assert_null(search_create(http, rows[i].place, rows[i].key, &fail));
    }
    assert_int_equal(search_check("tavily=https://api.tavily.com", KEY, NULL), 0);
    assert_int_equal(search_check("searxng=http://10.0.0.1:8080/searx", NULL, NULL), 0);
    fiber_cancel(acceptor);
    loop_run(loop);
}

static void a_worker_without_a_search_says_so(void **state)
{
    (void)state;
    struct toolbox box = {.limits = &limits};
    struct fail fail = {0};
    assert_int_equal(toolbox_add(&box, "search", &fail), -ENOSYS);
    assert_string_equal(fail.text, "this worker has no web search (sluice-worker --search)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(tavily_is_asked_by_post_with_its_key_in_a_header),
        TEST(searxng_is_asked_by_get_with_the_query_in_its_address),
        TEST(an_address_may_have_a_path_and_end_as_people_write_it),
        TEST(long_results_are_cut_each_and_all_together),
        TEST(what_goes_wrong_is_told_in_words),
        TEST(an_answer_of_many_levels_or_bytes_is_not_read),
        TEST(a_search_that_does_not_answer_ends_with_the_call_not_the_rollout),
        TEST(a_search_that_is_not_there_is_told),
        TEST(the_rollouts_own_time_is_no_answer),
        TEST(a_cancelled_rollout_is_no_answer),
        TEST(settings_are_refused_without_naming_the_key),
        cmocka_unit_test(a_worker_without_a_search_says_so),
    };
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
