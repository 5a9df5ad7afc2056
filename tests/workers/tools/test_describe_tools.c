/* The pages of tools and agents are what the tables say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "schemas/task/task.h"
#include "workers/tools/tools.h"

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

static void expect_page(const char *name, const char *program)
{
    AUTO_BUFFER page = {0}, printed = {0};
    char path[4096], command[4096];
    snprintf(path, sizeof(path), "%s/docs/%s", folder("SLUICE_SOURCE_DIR"), name);
    snprintf(command, sizeof(command), "'%s/workers/%s'", folder("SLUICE_BINARY_DIR"), program);
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    read_all(file, &page);
    FILE *pipe = popen(command, "r");
    read_all(pipe, &printed);
    assert_int_equal(pclose(pipe), 0);
    if (!slice_equal(buffer_peek(&page), buffer_peek(&printed)))
        fail_msg("docs/%s is behind: %s > docs/%s", name, program, name);
}

static void the_pages_are_what_the_tables_say(void **state)
{
    (void)state;
    expect_page("tools.md", "sluice-describe-tools");
    expect_page("agents.md", "sluice-describe-agents");
}

/* A task may name each tool there is, and no other. */
static void tasks_know_the_tools_of_the_table(void **state)
{
    (void)state;
    AUTO_BUFFER json = {0};
    struct refusal no = {0};
    size_t count = 0;
    buffer_append_str(&json, "{\"task\": \"t\", \"prompt\": \"p\", \"agent\": {\"kind\": \"tools\", \"tools\": [");
    for (; tool_at(count); count++)
        buffer_printf(&json, "%s\"%s\"", count ? ", " : "", tool_at(count)->name);
    buffer_append_str(&json, "]}}");
    struct task *task = task_parse(buffer_peek(&json), &no);
    if (!task)
        fail_msg("%s", no.text);
    assert_int_equal(task->tool_count, count);
    task_destroy(task);
    static const char *const names[] = {
#define TOOL(name) #name,
#include "schemas/task/tools.def"
#undef TOOL
    };
    assert_int_equal(sizeof(names) / sizeof(names[0]), count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_are_what_the_tables_say),
        cmocka_unit_test(tasks_know_the_tools_of_the_table),
    };
    return cmocka_run_group_tests_name("describe_tools", tests, NULL, NULL);
}
