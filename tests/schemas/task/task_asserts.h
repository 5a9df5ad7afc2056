/* task_asserts.h - for tests of tasks: what parses, and what is refused as what. */
#ifndef SLUICE_TESTS_SCHEMAS_TASK_TASK_ASSERTS_H
#define SLUICE_TESTS_SCHEMAS_TASK_TASK_ASSERTS_H

#include "common/base/cleanup.h"
#include "schemas/task/json/task_table.h"

static inline void cleanup_task(struct task **task) { task_destroy(*task); }
#define AUTO_TASK __attribute__((cleanup(cleanup_task))) struct task *

static inline struct task *parse(const char *json)
{
    struct refusal no = {0};
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        fail_msg("%s: %s", json, no.text);
    return task;
}

static inline void assert_refused_slice(struct slice json, enum refusal_reason reason, const char *field)
{
    struct refusal no = {0};
    AUTO_TASK task = task_parse(json, &no);
    if (task || no.reason != reason || strcmp(no.field, field) != 0)
        fail_msg("%.*s: %s [%s] '%s'", SLICE_ARG(json), refusal_wire(no.reason), no.field, no.text);
    assert_true(strlen(no.text) > 10);
}

static inline void assert_refused(const char *json, enum refusal_reason reason, const char *field)
{
    assert_refused_slice(slice_from_str(json), reason, field);
}

/* A good task with one member more: assert_member("\"samples\":0", ...). */
static inline void assert_member_refused(const char *member, enum refusal_reason reason, const char *field)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",%s}", member);
    assert_refused_slice(buffer_peek(&json), reason, field);
}

static inline struct task *parse_member(const char *member)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"prompt\":\"p\",%s}", member);
    assert_true(buffer_append(&json, "", 1));
    return parse((const char *)json.data);
}

#endif
