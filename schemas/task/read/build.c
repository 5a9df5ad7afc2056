/* The fields of build: an image made of a Dockerfile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schemas/task/read/task_read.h"

bool task_read_source(const struct task_place *place, struct task_value value)
{
    const char *path = place_node_path(place, value);
    return path && place_set_text(place, path);
}

/* `of`, here and below: "build", "eval.build" or a step's. */
static bool check_files(const char *of, const struct task_build *build, struct refusal *no)
{
    char field[64];
    snprintf(field, sizeof(field), "%s.files", of);
    if (build->context && build->files.count > 0)
        return refuse(no, REFUSAL_AMBIGUOUS, field, "only one of %s.context and %s may be given", of, field);
    for (size_t i = 0; i < build->files.count; i++) {
        snprintf(field, sizeof(field), "%s.files[%zu].source", of, i);
        if (build->files.each[i].source)
            return refuse(no, REFUSAL_BAD_TASK, field, "%s: %s.context takes what lies on a file system", field, of);
    }
    return true;
}

/* `json`: the build as it was sent, if it was: whether a time was given is not to be seen from its value. */
static bool check_whole(const char *of, const struct task_build *build, struct task_value json, struct refusal *no)
{
    const struct {
        const char *field;
        bool given;
    } others[] = {{"context", build->context},          {"files", build->files.count > 0},
                  {"args", build->args.count > 0},      {"target", build->target},
                  {"network", build->grants.count > 0}, {"timeout_s", task_value_get(json, "timeout_s").at}};
    char field[64];
    snprintf(field, sizeof(field), "%s.dockerfile", of);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !build->dockerfile; i++)
        if (others[i].given)
            return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing; %s.%s requires it", field, of,
                          others[i].field);
    return check_files(of, build, no);
}

static struct task_value evaluators_build(struct task_value json)
{
    return task_value_get(task_value_get(json, "eval"), "build");
}

/* The build's time is a part of init's. */
bool task_check_build(struct task *task, struct task_value json, struct refusal *no)
{
    if (task->build.dockerfile)
        task->limits.init_s += task->build.timeout_s;
    if (!check_whole("build", &task->build, task_value_get(json, "build"), no) ||
        !check_whole("eval.build", &task->eval_build, evaluators_build(json), no))
        return false;
    for (struct task_values each = task_values_of(task_value_get(json, "steps")); task_values_next(&each);) {
        char of[40];
        snprintf(of, sizeof(of), "steps[%zu].eval.build", each.at);
        if (!check_whole(of, &task->steps[each.at].eval.build, evaluators_build(each.value), no))
            return false;
    }
    return true;
}

static const char BLANKS[] = " \t\r";

/* The first line that begins with FROM: only comments, directives and ARGs may stand before it. */
static const char *first_from(const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *word = line + strspn(line, BLANKS);
        if (strncasecmp(word, "FROM", 4) == 0 && word[4] && strchr(BLANKS, word[4]))
            return word + 4;
    }
    return NULL;
}

void task_image_name(const struct task *task, char *ret, size_t size)
{
    const char *word = task->build.dockerfile && strcmp(task->image, "host") == 0 ? first_from(task->build.dockerfile)
                                                                                  : NULL;
    size_t len = 0;
    do {
        word = word ? word + len + strspn(word + len, BLANKS) : NULL;
        len = word ? strcspn(word, " \t\r\n") : 0;
    } while (len > 2 && memcmp(word, "--", 2) == 0);
    snprintf(ret, size, "%.*s", len ? (int)len : (int)strlen(task->image), len ? word : task->image);
}
