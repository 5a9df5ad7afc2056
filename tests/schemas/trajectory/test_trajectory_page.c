#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schemas/trajectory/trajectory_wire.h"
#include "schemas/trajectory/verdict.h"
#include "tests/schemas/trajectory/sample_record.h"

/* docs/trajectory.md names every key, and its program works. */

static char *take_page(void)
{
    char path[4096];
    struct buffer page = {0};
    assert_non_null(getenv("SLUICE_SOURCE_DIR"));
    snprintf(path, sizeof(path), "%s/docs/trajectory.md", getenv("SLUICE_SOURCE_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    uint8_t *room = buffer_reserve(&page, 65536);
    assert_non_null(room);
    page.len = fread(room, 1, 65536, file);
    return buffer_take_str(&page);
}

static void the_page_names_every_key(void **state)
{
    (void)state;
    AUTO_FREE char *page = take_page();
    for (unsigned id = 0; id < RECORD_MAP_COUNT; id++)
        for (size_t i = 0; i < record_map_get((enum record_map_id)id)->field_count; i++) {
            char row[64];
            snprintf(row, sizeof(row), "\n| `%s` | ", record_map_get((enum record_map_id)id)->fields[i].key);
            assert_non_null(strstr(page, row));
        }
}

/* The line of `key` in the tables of the verdict's bytes says `words`. */
static void assert_row_says(const char *page, const char *key, const char *words)
{
    char row[64];
    snprintf(row, sizeof(row), "\n| `%s` | array of maps | ", key);
    const char *line = strstr(page, row);
    assert_non_null(line);
    AUTO_FREE char *text = strndup(line + 1, strcspn(line + 1, "\n"));
    if (!strstr(text, words))
        fail_msg("%s does not say: %s", text, words);
}

static void the_page_says_the_most_that_a_verdict_holds(void **state)
{
    (void)state;
    char words[64];
    AUTO_FREE char *page = take_page();
    char *verdict = strstr(page, "### The verdict");
    assert_non_null(verdict);
    snprintf(words, sizeof(words), "at most %d:", VERDICT_PARTS_MAX);
    assert_row_says(verdict, "parts", words);
    snprintf(words, sizeof(words), "at most %d:", VERDICT_METRICS_MAX);
    assert_row_says(verdict, "metrics", words);
    snprintf(words, sizeof(words), "the first %d,%03d,", VERDICT_TESTS_MAX / 1000, VERDICT_TESTS_MAX % 1000);
    assert_row_says(verdict, "list", words);
}

/* The page's program, then `main`, as python reads it. */
static void make_script(struct buffer *out, const char *main)
{
    AUTO_FREE char *page = take_page();
    char *start = strstr(page, "```python\nimport lz4");
    assert_non_null(start);
    start += strlen("```python\n");
    char *end = strstr(start, "```");
    assert_non_null(end);
    buffer_append(out, start, (size_t)(end - start));
    assert_true(buffer_append_str(out, main) && buffer_append(out, "", 1));
}

/* Runs `script` with the record's bytes on its input; its first line of output. */
static void run_script(const struct buffer *script, const struct buffer *record, char *line, int size)
{
    char path[] = "/tmp/sluice-record-XXXXXX", redirected[64];
    AUTO_CLOSE int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, record->data, record->len), (ssize_t)record->len);
    setenv("SLUICE_SCRIPT", (const char *)script->data, 1);
    snprintf(redirected, sizeof(redirected), "/usr/bin/python3 -c \"$SLUICE_SCRIPT\" <%s", path);
    FILE *pipe = popen(redirected, "r");
    assert_non_null(pipe);
    bool read = fgets(line, size, pipe) != NULL;
    int status = pclose(pipe);
    unlink(path);
    assert_true(read && status == 0);
}

static void the_numpy_program_on_the_page_reads_a_record(void **state)
{
    (void)state;
    AUTO_BUFFER script = {0}, raw = {0}, packed = {0};
    AUTO_RECORD record;
    struct refusal no;
    char line[256];
    make_script(&script, "import sys\n"
                         "b = sys.stdin.buffer.read()\n"
                         "print([i.tolist() for i, *_ in read(b)], mean_logprob(b))\n");
    make_bytes(&raw);
    run_script(&script, &raw, line, sizeof(line));
    assert_string_equal(line, "[[101, 102, 103, 103, 4294967295], [101, 102, 103, 4294967295]] "
                              "-0.375\n");

    uint32_t ids[3000] = {0};
    float logprobs[3000];
    for (size_t i = 0; i < 3000; i++)
        logprobs[i] = -2;
    script.len = 0;
    make_script(&script, "import sys\n"
                         "b = sys.stdin.buffer.read()\n"
                         "print([i.size for i, *_ in read(b)], mean_logprob(b))\n");
    record_init(&record);
    assert_true(record_start_trace(&record, ""));
    assert_true(record_append(&record, &prompt_turn, ids, NULL, 3000, false));
    assert_true(record_append(&record, &said_turn, ids, logprobs, 3000, true));
    assert_true(record_encode(&record, &packed, &no) && holds(&packed, "codec\xa3lz4"));
    run_script(&script, &packed, line, sizeof(line));
    assert_string_equal(line, "[6000] -2.0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_names_every_key),
        cmocka_unit_test(the_page_says_the_most_that_a_verdict_holds),
        cmocka_unit_test(the_numpy_program_on_the_page_reads_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
