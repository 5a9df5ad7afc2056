/* Options as tables: what is read, what is refused and in which words, what help and pages say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/cmdline/cmdline.h"
#include "common/cmdline/duration.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"
#include "common/cmdline/size.h"

struct told {
    bool wet;
    const char *place;
    struct texts fish;
    uint64_t kind, count, wait_ms, hold_bytes, watch_ms;
    double slope;
    const char *needed;
};

static const struct option rows[] = {
    OPTION_ROW(struct told, FLAG, wet, NULL, "Whether it is wet.")
        OPTION_ROW(struct told, TEXT, place, "DIR", "Where it is.", .text = "here")
            OPTION_ROW(struct told, LIST, fish, "NAME", "A fish.", .of = "net")
                OPTION_ROW(struct told, WORD, kind, "river|lake|sea", "What kind it is of.", .preset = 1)
                    OPTION_ROW(struct told, NUMBER, count, "N", "How many.", .preset = 3, .min = 1, .max = 9)
                        OPTION_ROW(struct told, DURATION, wait, "TIME", "For how long.", .preset = 1500, .max = 60000)
                            OPTION_ROW(struct told, SIZE, hold, "SIZE", "How large.", .min = 1 << 10,
                                       .max = UINT64_C(8) << 30, .standard = "as it comes")
                                OPTION_ROW(struct told, DURATION, watch, "TIME", "How often.", .min = 100,
                                           .max = DURATION_FOREVER, .bare_ms = 2000)
                                    OPTION_ROW(struct told, REAL, slope, "N", "How steep.", .real = 0.25)
                                        OPTION_ROW(struct told, TEXT, needed, "WORD", "A word.", .required = true)};

static const struct option more[] = {
    {"long_name", OPTION_NUMBER, 0, "N", "Of the second table.", .preset = 7, .max = 100},
};

static const struct cmdline_status statuses[] = {{0, "it flows"}, {CMDLINE_WRONG, "the command line is wrong"}};

static const struct cmdline line = {
    .program = "sluice-test",
    .arguments = "net|rod [BAIT]",
    .arguments_min = 1,
    .arguments_max = 2,
    .brief = "Fishes",
    .doc = "In rivers, too.\n",
    .example = "sluice-test net --fish eel\n",
    .tables = {{.title = "options", .rows = rows, .count = ROWS(rows)},
               {.title = "settings", .rows = more, .count = ROWS(more)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
};

enum { WORDS_MAX = 100 };

/* What `words` with spaces between them are read as; the sentence in *fail. */
static int read_words(char *words, struct told *told, uint64_t *second, struct cmdline_values *values,
                      struct fail *fail)
{
    char *argv[WORDS_MAX], *rest = words;
    int argc = 0;
    for (char *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    *values = (struct cmdline_values){.into = {told, second}};
    return cmdline_parse(&line, argc, argv, values, fail);
}

static void what_is_not_given_is_as_the_rows_say(void **state)
{
    (void)state;
    struct told told;
    memset(&told, 0xa5, sizeof(told)); /* whatever was there */
    uint64_t second = 0;
    struct cmdline_values values;
    struct fail fail;
    assert_int_equal(read_words((char[]){"rod --needed x"}, &told, &second, &values, &fail), 0);
    assert_false(told.wet);
    assert_string_equal(told.place, "here");
    assert_string_equal(told.needed, "x");
    assert_int_equal(told.fish.count, 0);
    assert_int_equal(told.kind, 1);
    assert_int_equal(told.count, 3);
    assert_int_equal(told.wait_ms, 1500);
    assert_int_equal(told.hold_bytes, 0);
    assert_true(told.slope == 0.25);
    assert_int_equal(second, 7);
    assert_int_equal(values.argument_count, 1);
    assert_string_equal(values.arguments[0], "rod");
    assert_null(values.arguments[1]);
    cmdline_finish(&values);
}

static void each_kind_is_read(void **state)
{
    (void)state;
    struct told told = {0};
    uint64_t second = 0;
    struct cmdline_values values;
    struct fail fail;
    char words[] = "--wet --place=there --fish eel net --fish=carp --kind sea --count 9 --wait 1m "
                   "--hold 64M --watch "
                   "--slope 1e-3 --needed --wet --long-name 100 -- --worm";
    if (read_words(words, &told, &second, &values, &fail))
        fail_msg("%s", fail.text);
    assert_true(told.wet);
    assert_string_equal(told.place, "there");
    assert_int_equal(told.fish.count, 2);
    assert_string_equal(told.fish.items[0], "eel");
    assert_string_equal(told.fish.items[1], "carp");
    assert_int_equal(told.kind, 2);
    assert_int_equal(told.count, 9);
    assert_int_equal(told.wait_ms, 60000);
    assert_int_equal(told.hold_bytes, 64 << 20);
    assert_int_equal(told.watch_ms, 2000);
    assert_true(told.slope == 1e-3);
    assert_string_equal(told.needed, "--wet"); /* what follows is its value */
    assert_int_equal(second, 100);
    assert_int_equal(values.argument_count, 2);
    assert_string_equal(values.arguments[1], "--worm");
    cmdline_finish(&values);
}

static void what_is_wrong_is_said_with_what_is_wanted(void **state)
{
    (void)state;
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        {"net --frob --needed x", "there is no option --frob"},
        {"net --need x", "there is no option --need; did you mean '--needed'?"},
        {"net --needed", "--needed wants WORD"},
        {"net", "--needed WORD is missing"},
        {"--needed x", "net|rod [BAIT] is missing"},
        {"net a b --needed x", "'b' is one argument too many"},
        {"net --wet=yes --needed x", "--wet takes no value"},
        {"net --count 0 --needed x", "--count wants a number from 1 to 9, not '0'"},
        {"net --count -1 --needed x", "--count wants a number from 1 to 9, not '-1'"},
        {"net --count 3x --needed x", "--count wants a number from 1 to 9, not '3x'"},
        {"net --count= --needed x", "--count wants a number from 1 to 9, not ''"},
        {"net --long-name 101 --needed x", "--long-name wants a number from 0 to 100, not '101'"},
        {"net --kind pond --needed x", "--kind wants river|lake|sea, not 'pond'"},
        {"net --kind riv --needed x", "--kind wants river|lake|sea, not 'riv'"},
        {"net --kind= --needed x", "--kind wants river|lake|sea, not ''"},
        {"net --wait 5 --needed x", "--wait wants a time from 0s to 1m, such as 90s or 1h30m, not '5'"},
        {"net --wait 61s --needed x", "--wait wants a time from 0s to 1m, such as 90s or 1h30m, not '61s'"},
        {"net --hold 64 --needed x", "--hold wants a size from 1KiB to 8GiB, such as 512MiB or 8GiB, not '64'"},
        {"net --hold 9G --needed x", "--hold wants a size from 1KiB to 8GiB, such as 512MiB or 8GiB, not '9G'"},
        {"net --watch=5ms --needed x", "--watch wants a time from 100ms to forever, such as 90s or 1h30m, not '5ms'"},
        {"net --slope=-1 --needed x", "--slope wants a number from 0 on, not '-1'"},
        {"net --slope nan --needed x", "--slope wants a number from 0 on, not 'nan'"},
        {"rod --fish eel --needed x", "--fish is not for rod"},
        {"ne --fish eel --needed x", "--fish is not for ne"},
    };
    for (size_t i = 0; i < ROWS(cases); i++) {
        char words[128];
        struct told told = {0};
        uint64_t second;
        struct cmdline_values values;
        struct fail fail = {0};
        strcpy(words, cases[i].words);
        assert_int_equal(read_words(words, &told, &second, &values, &fail), -EINVAL);
        assert_string_equal(fail.text, cases[i].sentence);
        cmdline_finish(&values);
    }
}

static void a_list_has_an_end(void **state)
{
    (void)state;
    struct told told = {0};
    struct fail fail;
    for (size_t i = 0; i < TEXTS_MAX; i++)
        assert_int_equal(option_set(&rows[2], &told, "eel", &fail), 0);
    assert_int_equal(option_set(&rows[2], &told, "eel", &fail), -EINVAL);
    assert_string_equal(fail.text, "--fish may be given 64 times");
    assert_int_equal(told.fish.count, TEXTS_MAX);
}

static void who_asks_for_help_is_not_told_what_is_missing(void **state)
{
    (void)state;
    static const char *const asks[] = {"--help", "-h", "--help net a b c", "--version", "--help-markdown"};
    for (size_t i = 0; i < ROWS(asks); i++) {
        char words[64];
        struct told told;
        uint64_t second;
        struct cmdline_values values;
        struct fail fail;
        strcpy(words, asks[i]);
        assert_int_equal(read_words(words, &told, &second, &values, &fail), 0);
        assert_int_equal(values.help + values.version + values.markdown, 1);
        cmdline_finish(&values);
    }
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static const struct option verb_rows[] = {
    OPTION_ROW(struct told, LIST, fish, "NAME", "A fish.", .of = "take throw")
        OPTION_ROW(struct told, NUMBER, count, "N", "How many.", .max = 9, .of = "take")};

static const struct cmdline_verb verbs[] = {
    {"take", "WHERE [BAIT]", NULL}, {"throw", "WHERE", NULL}, {"rest", "", NULL}};

static const struct cmdline verb_line = {
    .program = "sluice-test",
    .command = "fish",
    .brief = "Fishes",
    .doc = "",
    .example = "sluice-test fish rest\n",
    .verbs = verbs,
    .verb_count = ROWS(verbs),
    .tables = {{.rows = verb_rows, .count = ROWS(verb_rows)}},
};

static int read_verb(const char *words, struct cmdline_values *values, struct fail *fail)
{
    static char copy[128];
    static struct told told;
    char *argv[WORDS_MAX], *rest = copy;
    int argc = 0;
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word; *copy && (word = strsep(&rest, " "));)
        argv[argc++] = word;
    *values = (struct cmdline_values){.into = {&told}};
    return cmdline_parse(&verb_line, argc, argv, values, fail);
}

static void a_verb_is_found_with_the_number_of_arguments_that_it_takes(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t verb, arguments;
    } cases[] = {
        {"take here", 0, 2}, {"--count 3 take here worm --fish eel", 0, 3}, {"throw there", 1, 2}, {"rest", 2, 1}};
    for (size_t i = 0; i < ROWS(cases); i++) {
        struct cmdline_values values;
        struct fail fail = {0};
        if (read_verb(cases[i].words, &values, &fail))
            fail_msg("%s: %s", cases[i].words, fail.text);
        assert_ptr_equal(values.verb, &verbs[cases[i].verb]);
        assert_int_equal(values.argument_count, cases[i].arguments);
        cmdline_finish(&values);
    }
}

static void what_is_wrong_of_a_verb_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *words, *sentence;
    } cases[] = {
        {"", "say which of these: take WHERE [BAIT] | throw WHERE | rest"},
        {"frob", "'frob' is not one of take, throw, rest"},
        {"trow x", "'trow' is not one of take, throw, rest; did you mean 'throw'?"},
        {"trow --count 3", "'trow' is not one of take, throw, rest; did you mean 'throw'?"},
        {"take", "take wants WHERE [BAIT]"},
        {"take a b c", "'c' is one argument too many"},
        {"rest a", "'a' is one argument too many"},
        {"throw a --count 3", "--count is not for throw"},
        {"rest --fish eel", "--fish is not for rest"},
    };
    for (size_t i = 0; i < ROWS(cases); i++) {
        struct cmdline_values values;
        struct fail fail = {0};
        assert_int_equal(read_verb(cases[i].words, &values, &fail), -EINVAL);
        assert_string_equal(fail.text, cases[i].sentence);
        cmdline_finish(&values);
    }
}

static void pages_show_verbs_with_their_arguments(void **state)
{
    (void)state;
    AUTO_FREE char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    cmdline_help(&verb_line, out);
    cmdline_completion(&verb_line, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strncmp(text, "usage: sluice-test fish take WHERE [BAIT] | throw WHERE | rest [OPTIONS]\n", 73),
                     0);
    assert_non_null(strstr(text, "take, throw: A fish."));
    assert_non_null(strstr(text, "\ntake\tchoice\t\t\nthrow\tchoice\t\t\nrest\tchoice\t\t\n"));
}

/* ---- what is shown ---------------------------------------------------------------------------- */

static char *written(void (*write)(const struct cmdline *line, FILE *out))
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    write(&line, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void help_shows_every_row_with_its_bounds_and_its_default(void **state)
{
    (void)state;
    static const char *const words[] = {
        "usage: sluice-test net|rod [BAIT] [OPTIONS]\n\nFishes.\n\nIn rivers, too.\n\noptions\n",
        "\n  --wet                   Whether it is wet.\n",
        "\n  --place DIR             Where it is. Default: here.\n",
        "\n  --fish NAME             net: A fish. May be repeated.\n",
        "\n  --kind river|lake|sea   What kind it is of. Default: lake.\n",
        "\n  --count N               How many. Takes 1 to 9. Default: 3.\n",
        "\n  --wait TIME             For how long. Takes 0s to 1m. Default: 1s500ms.\n",
        "\n  --hold SIZE             How large. Takes 1KiB to 8GiB. Default: as it comes.\n",
        "\n  --watch[=TIME]          How often. Takes 100ms or more.\n",
        "\n  --slope N               How steep. Default: 0.25.\n",
        "\n  --needed WORD           A word. Required.\n",
        "\nsettings\n  --long-name N           Of the second table. Takes 0 to 100. Default: 7.\n",
        "\nexit status\n  0   it flows.\n  2   the command line is wrong.\n",
        "\nfor example\n  sluice-test net --fish eel\n",
    };
    AUTO_FREE char *text = written(cmdline_help);
    for (size_t i = 0; i < ROWS(words); i++)
        if (!strstr(text, words[i]))
            fail_msg("'%s' is not in: %s", words[i], text);
}

static void a_page_shows_the_same(void **state)
{
    (void)state;
    static const char *const words[] = {
        "\n## sluice-test\n\n```\nsluice-test net|rod [BAIT] [OPTIONS]\n```\n\nFishes.\n\nIn "
        "rivers, too.\n\n| option |",
        "\n| `--fish NAME` | net: A fish. May be repeated. | |\n",
        "\n| `--kind river\\|lake\\|sea` | What kind it is of. | lake |\n",
        "\n| `--wait TIME` | For how long. Takes 0s to 1m. | 1s500ms |\n",
        "\nsettings:\n\n| option | meaning | default |\n|---|---|---|\n| `--long-name N` | Of the "
        "second table. Takes 0 to 100. | 7 |\n",
        "\n| exit status | when |\n|---|---|\n| 0 | it flows. |\n| 2 | the command line is wrong. "
        "|\n",
        "\n```sh\nsluice-test net --fish eel\n```\n",
    };
    AUTO_FREE char *text = written(cmdline_markdown);
    for (size_t i = 0; i < ROWS(words); i++)
        if (!strstr(text, words[i]))
            fail_msg("'%s' is not in: %s", words[i], text);
}

static void put_before(FILE *out) { fputs("| of its own |\n", out); }

static void a_page_begins_with_what_is_the_programs_own(void **state)
{
    (void)state;
    const struct cmdline own_line = {
        .program = "p", .arguments = "", .brief = "B", .doc = "", .example = "p\n", .before_markdown = put_before};
    AUTO_FREE char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    cmdline_markdown(&own_line, out);
    cmdline_cell("a|b", out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strncmp(text, "| of its own |\n\n## p\n", 21), 0);
    assert_string_equal(text + len - 4, "a\\|b");
}

static void long_words_are_set_in_lines(void **state)
{
    (void)state;
    char doc[400] = "";
    for (int i = 0; i < 30; i++)
        strcat(doc, "elevenchars ");
    const struct option row = {"x", OPTION_FLAG, 0, NULL, doc};
    const struct cmdline long_line = {.program = "p",
                                      .arguments = "",
                                      .brief = "B",
                                      .doc = "",
                                      .example = "p\n",
                                      .tables = {{.rows = &row, .count = 1}}};
    AUTO_FREE char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    cmdline_help(&long_line, out);
    assert_int_equal(fclose(out), 0);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        const size_t width = strcspn(at, "\n");
        assert_true(width <= 110 && (width == 0 || at[width - 1] != ' '));
    }
    assert_non_null(strstr(text, "elevenchars\n                          elevenchars elevenchars"));
}

/* ---- units --------------------------------------------------------------------------------------- */

static void times_and_sizes_are_read_as_they_are_written(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {
        0, 1, 500, 999, 1000, 1024, 90000, 5400000, 86400000, 1 << 20, UINT64_C(3) << 30, (UINT64_C(1) << 40) + 1};
    for (size_t i = 0; i < ROWS(numbers); i++) {
        char text[64];
        uint64_t again = 7;
        duration_format(numbers[i], text, sizeof(text));
        assert_true(duration_parse(text, &again) && again == numbers[i]);
        size_format(numbers[i], text, sizeof(text));
        assert_true(size_parse(text, &again) && again == numbers[i]);
    }
}

static void sizes_are_numbers_with_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"0M", 0},
                {"1000B", 1000},
                {"4K", 4096},
                {"4KiB", 4096},
                {"64M", 64 << 20},
                {"64MiB", 64 << 20},
                {"8G", UINT64_C(8) << 30},
                {"1T", UINT64_C(1) << 40},
                {"2PiB", UINT64_C(2) << 50},
                {"15E", UINT64_C(15) << 60}};
    static const char *const bad[] = {"",     "M",      "64",  "64m",    "64MB",
                                      "64Mi", "64MiBs", "-1M", " 1M",    "1 M",
                                      "1.5G", "16E",    "64b", "1G512M", "1234567890123456789B"};
    for (size_t i = 0; i < ROWS(good); i++) {
        uint64_t bytes;
        assert_true(size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < ROWS(bad); i++) {
        uint64_t bytes;
        if (size_parse(bad[i], &bytes))
            fail_msg("'%s' was read", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_is_as_the_rows_say),
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(what_is_wrong_is_said_with_what_is_wanted),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(who_asks_for_help_is_not_told_what_is_missing),
        cmocka_unit_test(a_verb_is_found_with_the_number_of_arguments_that_it_takes),
        cmocka_unit_test(what_is_wrong_of_a_verb_is_said),
        cmocka_unit_test(pages_show_verbs_with_their_arguments),
        cmocka_unit_test(help_shows_every_row_with_its_bounds_and_its_default),
        cmocka_unit_test(a_page_shows_the_same),
        cmocka_unit_test(a_page_begins_with_what_is_the_programs_own),
        cmocka_unit_test(long_words_are_set_in_lines),
        cmocka_unit_test(times_and_sizes_are_read_as_they_are_written),
        cmocka_unit_test(sizes_are_numbers_with_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
