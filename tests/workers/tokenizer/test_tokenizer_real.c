/*
 * A tokenizer of the worker's own beside a real engine: it makes the ids that the engine makes, saves
 * it being asked, and is left alone where it does not agree. The file is made from the model's own
 * vocabulary (tests/engines/gguf_tokenizer.py).
 */
#include "tests/workers/engines/exact_world.h"

#include "workers/engines/engines.h"
#include "workers/engines/template/encoding.h"
#include "workers/tokenizer/tokenizer.h"

static char path[96];
static struct tokenizers tokenizers;

/* sed: what to change in the file; "" leaves it. */
static void make_file(const char *sed)
{
    char command[2048];
    snprintf(path, sizeof(path), "%s/tokenizer.json", world.folder);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 '%s/tests/engines/gguf_tokenizer.py' '%s' | sed -e '%s' > '%s'", source_dir(),
             getenv("SLUICE_MODEL"), sed, path);
    assert_int_equal(system(command), 0);
}

/* A family's engine that is asked through a proxy, and a tokenizer beside it. */
static void open_local(const char *template, const char *sed)
{
    struct fail fail = {0};
    open_family(template);
    make_file(sed);
    if (tokenizers_add(&tokenizers, path, &fail) < 0)
        fail_msg("%s", fail.text);
    engines_set_tokenizers(world.engines, &tokenizers);
}

static void close_local(void)
{
    unlink(path);
    close_family();
    tokenizers_finish(&tokenizers);
}

static size_t times_asked(void)
{
    json_t *log = world_log(&world);
    const size_t count = log_count(log, "/tokenize");
    json_decref(log);
    return count;
}

struct observation {
    const char *content;
    size_t len, count;
    struct tokens ids;
    struct fail fail;
    int code;
    int64_t microseconds;
};

static void observe(void *arg)
{
    struct observation *observation = arg;
    struct engine *engine = world_engine(fiber_world);
    const struct slice content = slice_of(observation->content, observation->len);
    const struct telling telling = {.last = engine->info.ends.count ? engine->info.ends.ids[0] : 2,
                                    .replies = &(const char *){REPLY},
                                    .reply_count = 1,
                                    .contents = &content,
                                    .count = 1};
    const int64_t start_us = clock_us();
    for (size_t i = 0; observation->code == 0 && i < observation->count; i++) {
        observation->ids.count = 0;
        observation->code = engine_bridge(engine, &telling, &observation->ids, &observation->fail);
    }
    observation->microseconds = clock_us() - start_us;
}

static struct observation observation_of(const char *content, size_t len, size_t count)
{
    struct observation observation = {.content = content, .len = len, .count = count};
    world_run(&world, observe, &observation, 0, 1);
    if (observation.code < 0)
        fail_msg("%s", observation.fail.text);
    return observation;
}

static void no_observation_asks_the_engine_and_all_ids_are_its_own(void **state)
{
    (void)state;
    open_local("chatml.jinja", "");
    assert_all_exact(TELL_USER, true, "", REPLY);
    assert_non_null(world_engine(&world)->tokenizer);
    const size_t asked = times_asked();
    for (size_t i = 0; i + 1 < COUNT(outputs); i++) {
        struct observation observation = observation_of(outputs[i].text, outputs[i].len, 1);
        tokens_finish(&observation.ids);
    }
    assert_int_equal(times_asked(), asked);
    struct observation observation = observation_of(big, strlen(big), 1); /* is too much for it */
    assert_int_equal(times_asked(), asked + 1);
    tokens_finish(&observation.ids);
    close_local();
}

static void one_that_does_not_agree_is_left_alone(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "s/\"use_regex\": true/\"use_regex\": false/",
        "s/\"merges\": \\[\"[^\"]*\", /\"merges\": [/",
    };
    for (size_t i = 0; i < COUNT(changes); i++) {
        open_local("chatml.jinja", changes[i]);
        struct observation observation = observation_of("a.txt", 5, 1);
        tokens_finish(&observation.ids);
        assert_null(world_engine(&world)->tokenizer);
        const size_t asked = times_asked();
        observation = observation_of("0123 tokens", 11, 3);
        assert_int_equal(times_asked(), asked + 3);
        tokens_finish(&observation.ids);
        close_local();
    }
}

static void it_saves_time(void **state)
{
    (void)state;
    enum { LEN = 1850, TIMES = 100 }; /* about a thousand tokens */
    open_local(NULL, "");
    struct observation first = observation_of("x", 1, 1); /* learns */
    struct observation ours = observation_of(big, LEN, TIMES);
    world_engine(&world)->tokenizer = NULL;
    struct observation theirs = observation_of(big, LEN, TIMES);
    assert_int_equal(ours.ids.count, theirs.ids.count);
    assert_memory_equal(ours.ids.ids, theirs.ids.ids, ours.ids.count * sizeof(uint32_t));
    print_message("an observation of %zu tokens: %lld us here, %lld us by the engine and a proxy\n", ours.ids.count,
                  (long long)ours.microseconds / TIMES, (long long)theirs.microseconds / TIMES);
    tokens_finish(&first.ids);
    tokens_finish(&ours.ids);
    tokens_finish(&theirs.ids);
    close_local();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(no_observation_asks_the_engine_and_all_ids_are_its_own),
        TEST(one_that_does_not_agree_is_left_alone),
        TEST(it_saves_time),
    };
    return cmocka_run_group_tests(tests, make_big, free_big);
}
