/* Which stages there are, what they stand on, and which of them the target needs. */
#include "workers/dockerfile/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/steps.h"
#include "workers/dockerfile/variables.h"
#include "workers/dockerfile/words.h"

struct making {
    const struct dockerfile *dockerfile;
    const struct build_sources *sources;
    struct image_config global; /* ARGs before the first FROM */
    struct build_stages *into;
    size_t begins[STAGES_MAX + 1]; /* of each stage: its FROM, and behind the last */
    size_t room;                   /* see variables.h */
    struct fail *fail;
};

static const char *find_global(void *arg, const char *name)
{
    return image_config_get(&((struct making *)arg)->global, name);
}

void build_stages_finish(struct build_stages *stages)
{
    for (size_t i = 0; i < stages->count; i++) {
        struct build_stage *stage = &stages->each[i];
        for (size_t k = 0; k < stage->step_count; k++)
            stage_step_finish(&stage->steps[k]);
        free(stage->steps);
        free(stage->name);
        free(stage->base);
        image_config_finish(&stage->environment);
    }
    stages->count = 0;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* As %zu would write it; -1: it is no number of a stage. */
static int number_of(const char *text)
{
    const size_t len = strspn(text, "0123456789");
    return len > 0 && len <= 2 && !text[len] && (len == 1 || text[0] != '0') ? atoi(text) : -1;
}

/* A stage before `before` by name or number; -1: there is none. */
static int find_stage(const struct build_stages *stages, const char *name, size_t before)
{
    const int number = number_of(name);
    for (size_t i = before; i-- > 0;)
        if ((stages->each[i].name && strcasecmp(stages->each[i].name, name) == 0) || (int)i == number)
            return (int)i;
    return -1;
}

static int check_platform(const struct making *making, const struct dockerfile_instruction *from)
{
    static const char flag[] = "--platform=";
    for (size_t i = 0; i < from->flag_count; i++) {
        const char *value = from->flags[i] + strlen(flag);
        if (strncmp(from->flags[i], flag, strlen(flag)) != 0)
            return dockerfile_refuse(making->fail, from->line, "FROM has no %.60s", from->flags[i]);
        if (value[0] != '$' && strcmp(value, "linux/" STEP_ARCHITECTURE) != 0)
            return dockerfile_refuse(making->fail, from->line, "%.60s: this is linux/" STEP_ARCHITECTURE, value);
    }
    return 0;
}

static int refuse_from(const struct making *making, const struct dockerfile_instruction *from, int code)
{
    return code == -ENOMEM ? code : dockerfile_refuse(making->fail, from->line, "FROM: %s", making->fail->text);
}

static int add_stage(struct making *making, size_t at)
{
    const struct dockerfile_instruction *from = &making->dockerfile->each[at];
    struct build_stages *into = making->into;
    const struct expansion expansion = {.find = find_global, .arg = making, .escape = making->dockerfile->escape};
    const bool has_name = from->word_count == 3 && strcasecmp(from->words[1], "AS") == 0;
    if (from->word_count != 1 && !has_name)
        return dockerfile_refuse(making->fail, from->line, "FROM is FROM IMAGE, or FROM IMAGE AS NAME");
    if (into->count == STAGES_MAX)
        return dockerfile_refuse(making->fail, from->line, "more than %d stages", STAGES_MAX);
    int code = check_platform(making, from);
    if (code < 0)
        return code;
    struct build_stage *stage = &into->each[into->count];
    making->begins[into->count++] = at;
    *stage = (struct build_stage){.line = from->line, .base_stage = -1};
    code = word_expand(&expansion, from->words[0], &stage->base, making->fail);
    if (code < 0)
        return refuse_from(making, from, code);
    if (!stage->base[0])
        return dockerfile_refuse(making->fail, from->line, "FROM names no image: %.100s is empty", from->words[0]);
    if (has_name && !(stage->name = strdup(from->words[2])))
        return fail_memory(making->fail);
    stage->base_stage = find_stage(into, stage->base, into->count - 1);
    return 0;
}

/* ARGs before the first FROM, and each stage's beginning. */
static int find_stages(struct making *making)
{
    const struct dockerfile *dockerfile = making->dockerfile;
    int code = 0;
    for (size_t i = 0; i < dockerfile->count && code == 0; i++) {
        const struct dockerfile_instruction *one = &dockerfile->each[i];
        const bool is_from = strcmp(one->name, "FROM") == 0, is_arg = strcmp(one->name, "ARG") == 0;
        if (is_from)
            code = add_stage(making, i);
        else if (making->into->count == 0 && is_arg)
            code = variables_read_global(one, dockerfile->escape, making->sources->args, &making->global, making->fail);
        else if (making->into->count == 0)
            code = dockerfile_refuse(making->fail, one->line, "%s stands before the first FROM", one->name);
    }
    making->begins[making->into->count] = dockerfile->count;
    if (code == 0 && making->into->count == 0)
        code = fail_set(making->fail, -EINVAL, "it has no FROM");
    return code;
}

/* ---- what the target needs --------------------------------------------------------------------- */

static int find_target(struct making *making)
{
    struct build_stages *into = making->into;
    const char *wanted = making->sources->target;
    int found = wanted ? find_stage(into, wanted, into->count) : (int)into->count - 1;
    if (found < 0)
        return fail_set(making->fail, -EINVAL, "it has no stage %.100s, which build.target names", wanted);
    into->target = (size_t)found;
    into->each[found].is_needed = true;
    return 0;
}

/* What a COPY's first --from says; a second is refused where it is read. */
static const char *copied_from(const struct dockerfile_instruction *one)
{
    const char *from = NULL;
    for (size_t i = 0; i < one->flag_count && !from && strcmp(one->name, "COPY") == 0; i++)
        from = step_copy_from(one->flags[i]);
    return from;
}

static void need(struct making *making, size_t at)
{
    struct build_stage *stage = &making->into->each[at];
    if (stage->base_stage >= 0)
        making->into->each[stage->base_stage].is_needed = true;
    if (making->sources->environment_only)
        return;
    for (size_t i = making->begins[at] + 1; i < making->begins[at + 1]; i++) {
        const char *from = copied_from(&making->dockerfile->each[i]);
        const int found = from ? find_stage(making->into, from, at) : -1;
        if (found >= 0)
            making->into->each[found].is_needed = true;
    }
}

/* What the target's chain stands on, by the task's word. */
static int put_image(struct making *making)
{
    size_t at = making->into->target;
    while (making->into->each[at].base_stage >= 0)
        at = (size_t)making->into->each[at].base_stage;
    free(making->into->each[at].base);
    making->into->each[at].base = strdup(making->sources->image);
    return making->into->each[at].base ? 0 : fail_memory(making->fail);
}

/* ---- each stage --------------------------------------------------------------------------------- */

static int begin_environment(struct making *making, struct build_stage *stage)
{
    if (stage->base_stage >= 0)
        return image_config_copy(&making->into->each[stage->base_stage].environment, &stage->environment)
                   ? 0
                   : fail_memory(making->fail);
    if (strcmp(stage->base, "scratch") == 0)
        return 0;
    int code = making->sources->find_base(making->sources->arg, stage->base, &stage->environment, making->fail);
    return code == -EINVAL ? dockerfile_refuse(making->fail, stage->line, "%s", making->fail->text) : code;
}

static int make_stage(struct making *making, size_t at)
{
    struct build_stage *stage = &making->into->each[at];
    struct step_reading reading = {.escape = making->dockerfile->escape,
                                   .args = making->sources->args,
                                   .global = &making->global,
                                   .stage = stage,
                                   .room = &making->room,
                                   .fail = making->fail};
    int code = begin_environment(making, stage);
    for (size_t i = making->begins[at] + 1; i < making->begins[at + 1] && code == 0; i++)
        code = step_read(&reading, &making->dockerfile->each[i]);
    for (size_t k = 0; k < stage->step_count && code == 0; k++) {
        struct stage_step *step = &stage->steps[k];
        step->from_stage = step->from ? find_stage(making->into, step->from, at) : -1;
        if (step->from_stage >= 0)
            free(take_ptr(&step->from));
    }
    step_reading_finish(&reading);
    return code;
}

int build_stages_make(const struct dockerfile *dockerfile, const struct build_sources *sources,
                      struct build_stages *ret, struct fail *fail)
{
    struct making making = {
        .dockerfile = dockerfile, .sources = sources, .into = ret, .room = STAGES_EXPANDED_MAX, .fail = fail};
    ret->count = ret->target = 0;
    int code = find_stages(&making);
    if (code == 0)
        code = find_target(&making);
    if (code == 0 && sources->image)
        code = put_image(&making);
    for (size_t i = code == 0 ? ret->count : 0; i-- > 0;)
        if (ret->each[i].is_needed)
            need(&making, i);
    for (size_t i = 0; i < ret->count && code == 0; i++)
        if (ret->each[i].is_needed)
            code = make_stage(&making, i);
    image_config_finish(&making.global);
    return code;
}
