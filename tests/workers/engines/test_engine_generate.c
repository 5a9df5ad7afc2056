/* verl's dialect: a server that has POST /generate alone, with tokenizer and template of a model's directory. */
#include "tests/workers/engines/asking.h"
#include "tests/workers/engines/model_dir_world.h"

#include <sys/stat.h>

#include "workers/engines/check/check.h"
#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {
    .temperature = 1, .top_p = 0.25, .min_p = 0.125, .top_k = 3, .max_tokens = 64, .seed = 7};

static struct model_folder folder;
static struct model_dirs dirs;

static void open_server(const char *script)
{
    struct fail fail = {0};
    folder_open(&folder);
    if (model_dirs_add(&dirs, folder.path, 0, &fail) < 0)
        fail_msg("%s", fail.text);
    world_open(&world, script, NULL);
    engines_set_model_dirs(world.engines, &dirs);
}

static void close_server(void)
{
    world_close(&world);
    model_dirs_finish(&dirs);
    folder_close(&folder);
}

/* ---- what is sampled --------------------------------------------------------------------------- */

static void it_is_given_ids_and_tells_what_it_sampled(void **state)
{
    (void)state;
    open_server("{'dialect': 'generate', 'rules': [{'reply': 'h\\u00e9'}]}");
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    const struct generation *got = &asking.generation;
    struct tokens prompt = prompt_of("hi");
    assert_string_equal(got->text, "h\xc3\xa9");
    assert_string_equal(got->finish, "stop");
    assert_string_equal(got->version, "");
    assert_int_equal(got->sampled.count, 4);
    assert_int_equal(got->sampled.ids[3], BYTE_END);
    for (size_t i = 0; i < got->sampled.count; i++)
        assert_true(got->logprobs[i] == scripted_logprob(prompt.count + i, got->sampled.ids[i]));
    assert_int_equal(got->prompt_tokens, prompt.count);
    assert_int_equal(requests_to("/v1/chat/completions"), 0);
    tokens_finish(&prompt);
    generation_finish(&asking.generation);
    close_server();
}

static void every_setting_that_shapes_the_distribution_is_sent(void **state)
{
    (void)state;
    static const char *const said[] = {"\"max_tokens\":64",
                                       "\"top_p\":0.25",
                                       "\"min_p\":0.125",
                                       "\"top_k\":3",
                                       "\"seed\":8",
                                       "\"repetition_penalty\":1",
                                       "\"presence_penalty\":0",
                                       "\"ignore_eos\":false",
                                       "\"n\":1",
                                       "\"frequency_penalty\":0",
                                       "\"stop_token_ids\":[257,258]",
                                       "\"prompt_ids\":[256,"};
    open_server("{'dialect': 'generate'}");
    struct asking asking = {.user = "hi"};
    ask_one(&asking);
    json_t *log = world_log(&world), *last = json_array_get(log, json_array_size(log) - 1);
    AUTO_FREE char *sent = json_dumps(json_object_get(last, "request"), JSON_COMPACT);
    for (size_t i = 0; i < COUNT(said); i++)
        if (!strstr(sent, said[i]))
            fail_msg("%s is not in %s", said[i], sent);
    json_decref(log);
    generation_finish(&asking.generation);
    close_server();
}

static void every_fault_of_its_answers_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int expected;
        const char *words;
    } faults[] = {
        {"verl_no_ids", -EPROTO, "no response_ids"},
        {"verl_empty", -EPROTO, "no token ids"},
        {"verl_null", -EPROTO, "no logprobs, of which one of each id is wanted"},
        {"verl_no_logprobs", -EPROTO, "no logprobs, of which one of each id is wanted"},
        {"verl_one_less", -EPROTO, "3 response_ids and 2 logprobs"},
        {"verl_one_null", -EPROTO, "no log-probability for token 0"},
        {"verl_positive", -EPROTO, "is not a log-probability"},
        {"verl_text_for_id", -EPROTO, "is not an id"},
        {"verl_too_many", -EPROTO, "at most 64 were asked for"},
        {"verl_part", -EPROTO, "ended a turn with token 107, which is plain text"},
        {"not_an_object", -EPROTO, "no response_ids"},
        {"garbage", -EPROTO, "the JSON is broken"},
        {"500", -EIO, "the engine failed (500)"},
    };
    AUTO_BUFFER script = {0};
    buffer_append_str(&script, "{'dialect': 'generate', 'rules': [");
    for (size_t i = 0; i < COUNT(faults); i++)
        buffer_printf(&script, "%s{'if': '%s!', 'fault': '%s'}", i ? ", " : "", faults[i].name, faults[i].name);
    buffer_append_str(&script, "]}");
    AUTO_FREE char *text = buffer_take_str(&script);
    open_server(text);
    struct asking askings[COUNT(faults)] = {0};
    char users[COUNT(faults)][64];
    for (size_t i = 0; i < COUNT(faults); i++) {
        snprintf(users[i], sizeof(users[i]), "%s!", faults[i].name);
        askings[i] = (struct asking){.user = users[i], .expected = faults[i].expected, .words = faults[i].words};
    }
    ask_all(askings, COUNT(faults));
    for (size_t i = 0; i < COUNT(faults); i++)
        generation_finish(&askings[i].generation);
    close_server();
}

static void an_id_that_the_tokenizer_does_not_have_is_refused(void **state)
{
    (void)state;
    open_server("{'dialect': 'generate', 'rules': [{'if': 'hi', 'ids': [104, 60000, 257]}]}");
    struct asking asking = {
        .user = "hi", .expected = -EPROTO, .words = "token 60000 is none of the tokenizer in /tmp/sluice-model-"};
    ask_one(&asking);
    close_server();
}

static void a_turn_that_goes_on_behind_its_end_is_refused(void **state)
{
    (void)state;
    open_server("{'dialect': 'generate', 'rules': [{'if': 'hi', 'ids': [104, 257, 105, 257]}]}");
    struct asking asking = {
        .user = "hi", .expected = -EPROTO, .words = "sampled 2 tokens behind token 257, which ends a turn"};
    ask_one(&asking);
    close_server();
}

/* ---- what is known of it ------------------------------------------------------------------------- */

static void of_which_distribution_its_numbers_are_is_measured(void **state)
{
    (void)state;
    static const char *const modes[][2] = {{"raw", "raw"}, {"processed", "processed"}, {"filtered", "processed"}};
    for (size_t i = 0; i < COUNT(modes); i++) {
        char script[96];
        snprintf(script, sizeof(script), "{'dialect': 'generate', 'logprobs_mode': '%s'}", modes[i][0]);
        open_server(script);
        struct asking asking = {.user = "hi"};
        ask_one(&asking);
        assert_string_equal(engine_logprobs_mode(world_engine(&world)), modes[i][1]);
        generation_finish(&asking.generation);
        close_server();
    }
}

static void without_a_model_directory_it_is_refused_with_the_cure(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'generate'}", NULL);
    struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "wants --model-dir DIR of the worker"};
    ask_one(&asking);
    world_close(&world);
}

/* One that offers nothing of the kind is refused as ever, whatever directories there are. */
static void another_server_is_not_taken_for_one(void **state)
{
    (void)state;
    open_server("{'dialect': 'openai', 'lacks': ['/v1/models']}");
    struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "speaks no dialect that is known here"};
    ask_one(&asking);
    assert_null(strstr(asking.fail.text, "--model-dir"));
    close_server();
}

static void the_checks_of_an_engine_pass(void **state)
{
    (void)state;
    static const char *const passes[] = {"dialect", "context", "template", "ids",      "specials",
                                         "bridge",  "stop",    "text",     "logprobs", "too_long"};
    open_server("{'dialect': 'generate', 'context': 4096}");
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(engine_check(world.url, &dirs, true, out), ENGINE_CHECK_STATUS_WELL);
    fclose(out);
    json_t *report = json_loads(text, 0, NULL);
    const json_t *checks = json_object_get(report, "checks"), *check;
    size_t i, found = 0;
    json_array_foreach(checks, i,
                       check) for (size_t k = 0; k < COUNT(passes);
                                   k++) if (strcmp(json_string_value(json_object_get(check, "check")), passes[k]) == 0)
    {
        found++;
        if (strcmp(json_string_value(json_object_get(check, "verdict")), "pass") != 0)
            fail_msg("%s: %s", passes[k], json_string_value(json_object_get(check, "text")));
    }
    assert_int_equal(found, COUNT(passes));
    json_decref(report);
    free(text);
    close_server();
}

/* ---- the directory ---------------------------------------------------------------------------------- */

static void assert_dir_refused(const char *file, const char *text, const char *words)
{
    struct fail fail = {0};
    folder_open(&folder);
    folder_remove(&folder, file);
    if (text)
        folder_write(&folder, file, text);
    assert_int_not_equal(model_dirs_add(&dirs, folder.path, 0, &fail), 0);
    if (!strstr(fail.text, words))
        fail_msg("'%s' does not say '%s'", fail.text, words);
    assert_int_equal(dirs.count, 0);
    folder_close(&folder);
}

static void what_a_directory_lacks_is_named(void **state)
{
    (void)state;
    assert_dir_refused("tokenizer.json", NULL, "tokenizer.json: No such file or directory");
    assert_dir_refused("tokenizer.json", "{", "not JSON");
    assert_dir_refused("chat_template.jinja", NULL, "has no chat template: put it into chat_template.jinja");
    assert_dir_refused("chat_template.jinja", "a\n{% include 'x' %}",
                       "chat_template.jinja: line 2: the tag \"include\" is not known here");
    assert_dir_refused("config.json", NULL, "says nothing of the context");
    assert_dir_refused("config.json", "[]", "config.json: it is no JSON object");
    assert_dir_refused("generation_config.json", "{\"eos_token_id\": 60000}", "an eos_token_id that is no id");
}

/* Who opens a pipe that nobody writes to waits for ever. */
static void a_pipe_in_place_of_a_file_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"tokenizer.json", "chat_template.jinja", "config.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[128];
        struct fail fail = {0};
        folder_open(&folder);
        folder_remove(&folder, names[i]);
        snprintf(path, sizeof(path), "%s/%s", folder.path, names[i]);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_not_equal(model_dirs_add(&dirs, folder.path, 0, &fail), 0);
        assert_non_null(strstr(fail.text, names[i]));
        assert_non_null(strstr(fail.text, "it is no regular file"));
        folder_close(&folder);
    }
}

static void a_directory_is_for_the_engine_that_is_named_before_it(void **state)
{
    (void)state;
    struct fail fail = {0};
    char given[128];
    folder_open(&folder);
    snprintf(given, sizeof(given), "http://one:8000/=%s", folder.path);
    assert_int_equal(model_dirs_add(&dirs, given, 0, &fail), 0);
    assert_int_equal(model_dirs_add(&dirs, folder.path, 512, &fail), 0);
    assert_ptr_equal(model_dirs_find(&dirs, "http://one:8000"), &dirs.list[0]);
    assert_ptr_equal(model_dirs_find(&dirs, "http://two:8000"), &dirs.list[1]);
    assert_int_equal(dirs.list[0].context, 4096);
    assert_int_equal(dirs.list[1].context, 512);
    assert_int_equal(model_dirs_add(&dirs, "http://one:8000", 0, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "--model-dir wants DIR or URL=DIR"));
    model_dirs_finish(&dirs);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_given_ids_and_tells_what_it_sampled),
        cmocka_unit_test(every_setting_that_shapes_the_distribution_is_sent),
        cmocka_unit_test(every_fault_of_its_answers_is_told),
        cmocka_unit_test(an_id_that_the_tokenizer_does_not_have_is_refused),
        cmocka_unit_test(a_turn_that_goes_on_behind_its_end_is_refused),
        cmocka_unit_test(of_which_distribution_its_numbers_are_is_measured),
        cmocka_unit_test(without_a_model_directory_it_is_refused_with_the_cure),
        cmocka_unit_test(another_server_is_not_taken_for_one),
        cmocka_unit_test(the_checks_of_an_engine_pass),
        cmocka_unit_test(what_a_directory_lacks_is_named),
        cmocka_unit_test(a_pipe_in_place_of_a_file_is_refused),
        cmocka_unit_test(a_directory_is_for_the_engine_that_is_named_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
