/* The fields of build: an image made of a Dockerfile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schemas/task/task_read.h"

bool task_read_source(const struct task_place *place, const json_t *value)
{
    const char *path = place_node_path(place, value);
    return path && place_set_text(place, place_member(place), path);
}

static bool check_files(const struct task_build *build, struct refusal *no)
{
    char field[64];
    if (build->context && build->files.count > 0)
        return refuse(no, REFUSAL_AMBIGUOUS, "build.files", "only one of build.context and build.files may be given");
    for (size_t i = 0; i < build->files.count; i++) {
        snprintf(field, sizeof(field), "build.files[%zu].source", i);
        if (build->files.each[i].source)
            return refuse(no, REFUSAL_BAD_TASK, field, "%s: build.context takes what lies on a file system", field);
    }
    return true;
}

/* The build's time is a part of init's. */
bool task_check_build(struct task *task, struct refusal *no)
{
    const struct task_build *build = &task->build;
    const struct {
        const char *field;
        bool given;
    } others[] = {{"build.context", build->context},
                  {"build.files", build->files.count > 0},
                  {"build.args", build->args.count > 0},
                  {"build.target", build->target},
                  {"build.network", build->grant_count > 0}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !build->dockerfile; i++)
        if (others[i].given)
            return refuse(no, REFUSAL_MISSING_FIELD, "build.dockerfile", "build.dockerfile is missing; %s requires it",
                          others[i].field);
    if (build->dockerfile)
        task->limits.init_s += build->timeout_s;
    return check_files(build, no);
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
