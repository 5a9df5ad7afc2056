#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "schemas/task/json/task_table.h"

static void read_all(FILE *file, struct buffer *out)
{
    assert_non_null(file);
    for (size_t got = 1; got > 0; out->len += got) {
        uint8_t *room = buffer_reserve(out, 4096);
        assert_non_null(room);
        got = fread(room, 1, 4096, file);
    }
}

static const char *folder(const char *variable)
{
    const char *path = getenv(variable);
    if (!path)
        fail_msg("%s is not set", variable);
    return path;
}

/* What sluice-describe prints; its exit status. */
static int describe(const char *arguments, struct buffer *out)
{
    char command[4096];
    snprintf(command, sizeof(command), "'%s/schemas/sluice-describe' %s 2>/dev/null", folder("SLUICE_BINARY_DIR"),
             arguments);
    FILE *pipe = popen(command, "r");
    read_all(pipe, out);
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_page(const char *path, struct buffer *out)
{
    char full[4096];
    snprintf(full, sizeof(full), "%s/%s", folder("SLUICE_SOURCE_DIR"), path);
    AUTO_FCLOSE FILE *file = fopen(full, "r");
    read_all(file, out);
}

static void assert_generated(const char *path, const char *what)
{
    AUTO_BUFFER page = {0}, printed = {0};
    read_page(path, &page);
    assert_int_equal(describe(what, &printed), 0);
    if (!slice_equal(buffer_peek(&page), buffer_peek(&printed)))
        fail_msg("%s is behind its table: sluice-describe %s > %s", path, what, path);
}

static void the_page_of_messages_is_what_the_table_says(void **state)
{
    (void)state;
    assert_generated("docs/contributing/messages.md", "messages-md");
}

static void the_messages_for_other_languages_are_what_the_table_says(void **state)
{
    (void)state;
    assert_generated("client/python/sluice/protocol/messages.json", "messages-json");
    assert_generated("client/python/sluice/task/tasks.json", "tasks-json");
}

static void the_page_of_sandboxes_has_the_table_of_limits(void **state)
{
    (void)state;
    AUTO_BUFFER page = {0}, printed = {0};
    read_page("docs/sandbox.md", &page);
    assert_int_equal(describe("limits-md", &printed), 0);
    if (!memmem(page.data, page.len, printed.data, printed.len))
        fail_msg("docs/sandbox.md is behind its table: see sluice-describe limits-md");
}

static void the_page_of_metrics_has_their_table(void **state)
{
    (void)state;
    AUTO_BUFFER page = {0}, printed = {0};
    read_page("docs/metrics.md", &page);
    assert_int_equal(describe("metrics-md", &printed), 0);
    if (!memmem(page.data, page.len, printed.data, printed.len))
        fail_msg("docs/metrics.md is behind its table: see sluice-describe metrics-md");
}

static void the_page_of_tasks_is_what_the_table_says(void **state)
{
    (void)state;
    assert_generated("docs/tasks.md", "tasks-md");
}

static void what_it_does_not_know_it_says_with_its_status(void **state)
{
    (void)state;
    AUTO_BUFFER printed = {0};
    assert_int_equal(describe("", &printed), 2);
    assert_int_equal(describe("tasks", &printed), 2);
    assert_int_equal(describe("tasks-md again", &printed), 2);
    assert_int_equal(printed.len, 0);
}

/* The text between `open` and `close` from *at on; moves *at past it. False: there is none. */
static bool find_between(char **at, const char *open, const char *close, struct slice *ret)
{
    char *start = strstr(*at, open);
    char *end = start ? strstr(start + strlen(open), close) : NULL;
    if (!end)
        return false;
    *ret = slice_of(start + strlen(open), (size_t)(end - start) - strlen(open));
    *at = end;
    return true;
}

static char *take_page(const char *path)
{
    struct buffer page = {0};
    read_page(path, &page);
    char *text = buffer_take_str(&page);
    assert_non_null(text);
    return text;
}

static void every_task_shown_on_a_page_is_a_good_one(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t examples;
    } pages[] = {{"docs/tasks.md", 7}, {"README.md", 1}};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        AUTO_FREE char *page = take_page(pages[i].path);
        struct slice json;
        struct refusal no = {0};
        size_t seen = 0;
        for (char *at = page; find_between(&at, "```json\n", "```", &json); seen++) {
            struct task *task = task_parse(json, &no);
            if (!task)
                fail_msg("%s: %s", pages[i].path, no.text);
            task_destroy(task);
        }
        assert_int_equal(seen, pages[i].examples);
    }
}

/* Rows of the page's last table: | `task` | `path` | sentence |. */
static void every_refusal_shown_on_the_page_is_the_one_that_comes(void **state)
{
    (void)state;
    AUTO_FREE char *page = take_page("docs/tasks.md");
    char *at = strstr(page, "## When a task is refused");
    assert_non_null(at);
    struct slice json = {0}, field = {0}, words = {0};
    size_t seen = 0;
    for (; find_between(&at, "\n| `", "` | `", &json); seen++) {
        assert_true(find_between(&at, "` | `", "` | ", &field) && find_between(&at, " | ", " |\n", &words));
        struct refusal no = {0};
        struct task *task = task_parse(json, &no);
        if (task || !slice_is(field, no.field) || !slice_is(words, no.text))
            fail_msg("%.*s is refused as [%s] %s", SLICE_ARG(json), no.field, no.text);
    }
    assert_true(seen >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_messages_is_what_the_table_says),
        cmocka_unit_test(the_messages_for_other_languages_are_what_the_table_says),
        cmocka_unit_test(the_page_of_sandboxes_has_the_table_of_limits),
        cmocka_unit_test(the_page_of_metrics_has_their_table),
        cmocka_unit_test(the_page_of_tasks_is_what_the_table_says),
        cmocka_unit_test(what_it_does_not_know_it_says_with_its_status),
        cmocka_unit_test(every_task_shown_on_a_page_is_a_good_one),
        cmocka_unit_test(every_refusal_shown_on_the_page_is_the_one_that_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
