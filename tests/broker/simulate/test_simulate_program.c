/* sluice-simulate as a program: what it prints, what it reads, and what it refuses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "broker/simulate/program.h"
#include "common/base/cleanup.h"

enum { SAID_MAX = 16384 };

/* Its exit status, and what it wrote to stdout and stderr. */
static int run(const char *arguments, char said[SAID_MAX])
{
    char command[1024];
    snprintf(command, sizeof(command), "%s/broker/sluice-simulate %s 2>&1", getenv("SLUICE_BINARY_DIR"), arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    size_t len = fread(said, 1, SAID_MAX - 1, out);
    said[len] = '\0';
    int status = pclose(out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static json_t *run_json(const char *arguments)
{
    char said[SAID_MAX];
    assert_int_equal(run(arguments, said), 0);
    json_t *object = json_loads(said, 0, NULL);
    if (!object)
        fail_msg("no JSON: %s", said);
    return object;
}

static double real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void what_is_wrong_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *words;
        int status;
    } cases[] = {
        {"--engins 4", "there is no option --engins", SIMULATE_USAGE},
        {"--engines", "--engines wants E", SIMULATE_USAGE},
        {"--engines 0", "--engines wants a number from 1 to 1024, not '0'", SIMULATE_USAGE},
        {"--nodes 10k", "--nodes wants a number from 1 to 5000, not '10k'", SIMULATE_USAGE},
        {"--nodes 2 --eval-nodes 3", "--eval-nodes must be at most --nodes", SIMULATE_USAGE},
        {"--nodes 5000 --slots 32768", "more than 4000000", SIMULATE_USAGE},
        {"--nodes 5000 --slots 1 --init-slots 32768", "more than 4000000", SIMULATE_USAGE},
        {"stray", "'stray' is one argument too many", SIMULATE_USAGE},
        {"--tasks sew", "'sew' is neither a file, a known distribution nor KEY=RANGE", SIMULATE_USAGE},
        {"--tasks turns=3", "sampled is missing: say how many tokens", SIMULATE_USAGE},
        {"--tasks sampled=3,turn=2", "there is no quantity 'turn'", SIMULATE_USAGE},
        {"--tasks sampled=3,sampled=4", "sampled: named twice", SIMULATE_USAGE},
        {"--tasks sampled=few", "sampled: 'few' is neither N, A..B nor ~A..B", SIMULATE_USAGE},
        {"--tasks sampled=-3", "sampled: '-3' is neither", SIMULATE_USAGE},
        {"--tasks sampled=9..3", "sampled: '9..3' begins above its end", SIMULATE_USAGE},
        {"--tasks sampled=~100", "sampled: '~100' is neither", SIMULATE_USAGE},
        {"--tasks sampled=0", "sampled: must be from 1 to", SIMULATE_USAGE},
        {"--tasks sampled=5s", "sampled: '5s' is neither", SIMULATE_USAGE},
        {"--tasks sampled=5,tool=2d", "tool: '2d' is neither", SIMULATE_USAGE},
        {"--tasks sampled=5,tool=25h", "tool: must be from 0 to 86400 seconds", SIMULATE_USAGE},
        {"--tasks sampled=5,tool=~0..3s", "tool: '~0..3s': a lognormal begins above 0", SIMULATE_USAGE},
        {"--batch 4 --sampling round", "--sampling wants sampler|rounds|carry-prompts, not 'round'", SIMULATE_USAGE},
        {"--batch 4 --sampling rounds --per-hour 9", "--per-hour: with --sampling rounds it is the trainer who submits",
         SIMULATE_USAGE},
        {"--batch 4 --solved 10..20,", "--solved wants two whole numbers of per cent", SIMULATE_USAGE},
        {"--batch 4 --solved 10..20,30..101", "--solved wants two whole numbers of per cent", SIMULATE_USAGE},
        {"--tasks /nowhere/t.jsonl", "cannot open /nowhere/t.jsonl", SIMULATE_FAILED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char said[SAID_MAX];
        int status = run(cases[i].arguments, said);
        if (status != cases[i].status || !strstr(said, cases[i].words))
            fail_msg("%s: status %d: %s", cases[i].arguments, status, said);
    }
}

static void help_names_every_option_quantity_and_distribution(void **state)
{
    (void)state;
    static const char *const words[] = {
        "\n  --tokens-per-second T ",
        "\n  --json ",
#define QUANTITY(name, unit, least, most, doc) "  " #name " ",
#include "broker/simulate/quantities.def"
#undef QUANTITY
#define PRESET(name, text, doc) text,
#include "broker/simulate/presets.def"
#undef PRESET
    };
    char said[SAID_MAX];
    assert_int_equal(run("--help", said), 0);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strstr(said, words[i]))
            fail_msg("'%s' is not in the help", words[i]);
}

static void a_distribution_may_mix_all_forms_of_ranges(void **state)
{
    (void)state;
    json_t *object = run_json("--json --slots 8 --seed 3 --tasks turns=8..30,prompt=2000,sampled=150..600,"
                              "tool=0.2..5s,said=~50..500,init=500ms,eval=0.1m");
    assert_true(real(object, "rollouts_per_hour") > 0);
    assert_string_equal(json_string_value(json_object_get(object, "bottleneck")), "run");
    assert_true(real(json_object_get(json_object_get(object, "parts"), "run"), "busy") > 0.98);
    json_decref(object);
}

static void words_tell_rates_parts_and_the_bottleneck(void **state)
{
    (void)state;
    char said[SAID_MAX];
    assert_int_equal(run("--samples 1 --slots 1 --tasks turns=4,sampled=120,tool=1s", said), 0);
    static const char *const words[] = {"rollouts/hour  327\n",
                                        "part ",
                                        "busy",
                                        "wait p99",
                                        "init slots",
                                        "run slots",
                                        "eval slots",
                                        "engines, sampling",
                                        "engines, reading prompts",
                                        "bottleneck     run slots: with 1 at most 327 rollouts/hour"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strstr(said, words[i]))
            fail_msg("'%s' is not in: %s", words[i], said);
}

static void each_way_of_sampling_tells_its_batches_groups_and_tokens(void **state)
{
    (void)state;
    static const char *const ways[] = {"sampler", "rounds", "carry-prompts"}, *const numbers[] = {"batches_per_hour",
                                                                                                  "groups_asked",
                                                                                                  "groups_filtered",
                                                                                                  "groups_wasted",
                                                                                                  "age",
                                                                                                  "tokens",
                                                                                                  "tokens_in_batches",
                                                                                                  "tokens_filtered",
                                                                                                  "tokens_wasted"};
    for (size_t way = 0; way < 3; way++) {
        char arguments[256], said[SAID_MAX];
        snprintf(arguments, sizeof(arguments), "--tasks sampled=10..99 --batch 4 --samples 4 --sampling %s", ways[way]);
        assert_int_equal(run(arguments, said), 0);
        for (const char *const *words =
                 (const char *const[]){"\nbatches  ", "\ngroups  ", "\ntokens  ", ways[way], NULL};
             *words; words++)
            if (!strstr(said, *words))
                fail_msg("'%s' is not in: %s", *words, said);
        strcat(arguments, " --json");
        json_t *object = run_json(arguments);
        assert_string_equal(json_string_value(json_object_get(object, "sampling")), ways[way]);
        assert_true(real(object, "batches") == 16 && real(object, "groups_in_batches") == 16 * 4);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
            assert_true(real(object, numbers[i]) >= 0);
        json_decref(object);
    }
}

/* ---- recorded trajectories ------------------------------------------------------------------- */

#define TURN(role, offset, length, seconds)                                                                            \
    "{\"role\": \"" role "\", \"offset\": " #offset ", \"length\": " #length ", \"seconds\": " #seconds "}"

static const char good[] = "{\"outcome\": \"ok\", \"group\": \"g\", \"init_ms\": 2000, \"run_ms\": 9000, \"eval_ms\": "
                           "3000, \"traces\": "
                           "[{\"turns\": [" TURN("prompt", 0, 300, 0) ", " TURN("assistant", 300, 120, 4) ", " TURN(
                               "tool", 420, 50, 1.5) ", " TURN("assistant", 470, 60, 2) "]}]}\n";

static const char *write_file(const char *text, char path[64])
{
    strcpy(path, "/tmp/sluice-simulate-XXXXXX");
    AUTO_CLOSE int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return path;
}

static void recorded_trajectories_are_drawn_from(void **state)
{
    (void)state;
    char path[64], arguments[256];
    snprintf(arguments, sizeof(arguments),
             "--json --slots 1 --samples 1 --prefill-tokens-per-second 100000000 "
             "--tasks %s",
             write_file(good, path));
    json_t *object = run_json(arguments);
    unlink(path);
    /* 180 tokens at 60 a second, 1.5 s of tools, and 1.5 s that was neither call nor tool */
    assert_true(fabs(real(object, "run_s") - 6) < 0.01);
    assert_true(fabs(real(object, "rollouts_per_hour") - 600) < 1);
    const json_t *parts = json_object_get(object, "parts");
    assert_true(fabs(real(json_object_get(parts, "init"), "could_per_hour") - 7200) < 1);
    assert_true(fabs(real(json_object_get(parts, "eval"), "could_per_hour") - 4800) < 1);
    json_decref(object);
}

static void a_file_that_is_no_trajectories_is_refused_by_line(void **state)
{
    (void)state;
    static const char infra[] = "{\"outcome\": \"infra\", \"group\": \"g\", \"traces\": []}\n";
    static const struct {
        const char *second, *words;
    } cases[] = {
        {"{\"outcome\": \"ok\"\n", ":2: is not JSON"},
        {"{\"group\": \"g\"}\n", ":2: is not a trajectory: it lacks outcome"},
        {"{\"outcome\": \"ok\", \"traces\": []}\n", ":2: is not a trajectory: it lacks group"},
        {"{\"outcome\": \"ok\", \"group\": \"g\"}\n", ":2: is not a trajectory: it lacks traces"},
        {infra, "no trajectory in it ended ok or as the agent's with a model call"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char path[64], text[1024], arguments[128], said[SAID_MAX];
        snprintf(text, sizeof(text), "%s%s", infra, cases[i].second);
        snprintf(arguments, sizeof(arguments), "--tasks %s", write_file(text, path));
        int status = run(arguments, said);
        unlink(path);
        if (status != SIMULATE_FAILED || !strstr(said, cases[i].words))
            fail_msg("status %d: %s", status, said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused_by_name),
        cmocka_unit_test(help_names_every_option_quantity_and_distribution),
        cmocka_unit_test(a_distribution_may_mix_all_forms_of_ranges),
        cmocka_unit_test(words_tell_rates_parts_and_the_bottleneck),
        cmocka_unit_test(each_way_of_sampling_tells_its_batches_groups_and_tokens),
        cmocka_unit_test(recorded_trajectories_are_drawn_from),
        cmocka_unit_test(a_file_that_is_no_trajectories_is_refused_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
