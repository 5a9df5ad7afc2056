/* What `sluice logs` prints of what is heard: each thing once, and nothing that steers a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/print/live_print.h"

static char said[65536];

/* What the batches make it print. */
static const char *print_all(struct live_print *print, const char *const *batches, size_t count)
{
    char path[] = "/tmp/sluice-live-XXXXXX";
    const int fd = mkstemp(path), out = dup(STDOUT_FILENO);
    assert_true(fd >= 0 && out >= 0);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    for (size_t i = 0; i < count; i++)
        assert_true(live_print_batch(print, batches[i]));
    live_print_finish(print);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    const ssize_t len = pread(fd, said, sizeof(said) - 1, 0);
    assert_true(len >= 0);
    said[len] = '\0';
    close(fd);
    close(out);
    unlink(path);
    return said;
}

#define PRINT(print, ...)                                                                                              \
    print_all(print, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#define FIRST "{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":1,\"events\":["
#define NEXT "{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":9,\"events\":["
#define HI "{\"event\":\"message\",\"index\":0,\"role\":\"user\",\"sampled\":false,\"content\":\"hi\\nyou\"}"

static void what_is_told_anew_is_printed_once(void **state)
{
    (void)state;
    struct live_print print = {.json = false};
    PRINT(&print, FIRST "{\"event\":\"phase\",\"ms\":1500,\"phase\":\"tool\",\"of\":\"bash\"}," HI "]}",
          FIRST "{\"event\":\"phase\",\"ms\":1000,\"phase\":\"agent\"}," HI
                ",{\"event\":\"message\",\"index\":1,\"role\":\"tool\",\"tool\":\"bash: ls\",\"exit_status\":2,"
                "\"sampled\":false,\"content\":\"none\"}]}",
          "{\"rollout\":\"g/0\",\"events\":[{\"event\":\"dropped\",\"count\":7}]}",
          NEXT
          "{\"event\":\"end\",\"ms\":2000,\"outcome\":\"ok\",\"detail\":\"3 turns\"},{\"event\":\"of tomorrow\"}]}",
          "{\"rollout\":\"g/0\",\"events\":[{\"event\":\"ended\"}]}");
    assert_string_equal(said, "-- 1.5 s: tool bash\n"
                              "\nuser\n  | hi\n  | you\n"
                              "\ntool bash: ls  [exit status 2]\n  | none\n"
                              "-- 7 events were dropped\n"
                              "-- 2.0 s: run ended: ok (3 turns)\n");
    assert_true(print.is_ended);
}

static void on_a_terminal_a_turn_is_printed_as_it_is_sampled_and_not_again(void **state)
{
    (void)state;
    struct live_print print = {.streams = true};
    PRINT(&print,
          FIRST "{\"event\":\"delta\",\"sampling\":1,\"text\":\"It \"},"
                "{\"event\":\"delta\",\"sampling\":2,\"text\":\"another's\"}]}",
          NEXT "{\"event\":\"delta\",\"sampling\":1,\"text\":\"is\\n2\"},"
               "{\"event\":\"message\",\"index\":0,\"role\":\"assistant\",\"sampled\":true,\"content\":\"It "
               "is\\n2.\\n\\nDone.\"}]}");
    assert_string_equal(said, "\nassistant\n  | It is\n  | 2.\n  | \n  | Done.\n");
    struct live_print again = {.streams = true};
    PRINT(&again,
          FIRST "{\"event\":\"delta\",\"sampling\":1,\"text\":\"Half\"},{\"event\":\"taken-back\",\"sampling\":1},"
                "{\"event\":\"message\",\"index\":0,\"role\":\"assistant\",\"sampled\":true,\"content\":\"Whole\"}]}");
    assert_string_equal(said, "\nassistant\n  | Half\n-- the engine broke off: that is sampled again\n"
                              "\nassistant\n  | Whole\n");
}

static void nothing_of_others_steers_a_terminal(void **state)
{
    (void)state;
#define SPICE "\\u001b]0;t\\u0007\\u202e\\u009b2J"
    static const char spiced[] = FIRST "{\"event\":\"phase\",\"ms\":1,\"phase\":\"x" SPICE "\",\"of\":\"" SPICE "\"},"
                                       "{\"event\":\"message\",\"index\":0,\"role\":\"r" SPICE "\",\"tool\":\"t" SPICE
                                       "\",\"content\":\"c" SPICE "\"},"
                                       "{\"event\":\"trace\",\"trace\":0,\"reason\":\"" SPICE "\"},"
                                       "{\"event\":\"turn\",\"turn\":0,\"role\":\"assistant\",\"finish\":\"" SPICE
                                       "\"},"
                                       "{\"event\":\"delta\",\"sampling\":1,\"text\":\"" SPICE "\"},"
                                       "{\"event\":\"times\",\"seconds\":{\"" SPICE "\":1}},"
                                       "{\"event\":\"end\",\"outcome\":\"" SPICE "\",\"detail\":\"" SPICE "\"}]}";
    for (int json = 0; json < 2; json++) {
        struct live_print print = {.json = json, .streams = true};
        PRINT(&print, spiced);
        assert_true(strlen(said) > 100);
        assert_null(strpbrk(said, "\x1b\x07"));
        assert_null(strstr(said, "\xe2\x80\xae"));
        assert_null(strstr(said, "\xc2\x9b"));
    }
}

static void as_json_each_event_is_a_line_with_its_part_and_number(void **state)
{
    (void)state;
    struct live_print print = {.json = true};
    PRINT(&print, NEXT "{\"event\":\"a\"},{\"event\":\"b\"}]}",
          "{\"rollout\":\"g/0\",\"events\":[{\"event\":\"ended\"}]}");
    assert_string_equal(said, "{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":9,\"event\":\"a\"}\n"
                              "{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":10,\"event\":\"b\"}\n");
    assert_true(print.is_ended);
    assert_false(live_print_batch(&print, "no JSON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_anew_is_printed_once),
        cmocka_unit_test(on_a_terminal_a_turn_is_printed_as_it_is_sampled_and_not_again),
        cmocka_unit_test(nothing_of_others_steers_a_terminal),
        cmocka_unit_test(as_json_each_event_is_a_line_with_its_part_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
