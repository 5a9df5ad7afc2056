/*
 * Any bytes: a Dockerfile, and behind form feeds a .dockerignore and a path that it is asked about. The Dockerfile is
 * refused by its line, or comes to stages that keep what stages.h says; and patterns match as their rules say when they
 * are tried one by one.
 */
#include <errno.h>
#include <limits.h>

#include "common/base/cleanup.h"
#include "tests/fuzz.h"
#include "workers/dockerfile/glob.h"
#include "workers/dockerfile/stages.h"

enum { TRIED_MAX = 48 }; /* bytes of a pattern and of a path that are tried one by one */

/* ---- the text ----------------------------------------------------------------------------------------- */

static size_t count_lines(struct slice text)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

/* By a line that there is, but for what is no line's fault. */
static void check_refusal(struct slice text, const struct fail *fail)
{
    static const char *const whole[] = {"a Dockerfile holds no NUL", "it has no instructions", "it has no FROM"};
    unsigned line;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (strcmp(fail->text, whole[i]) == 0)
            return;
    must(sscanf(fail->text, "line %u: ", &line) == 1 && line >= 1 && line <= count_lines(text));
}

static void check_words(char *const *words, size_t count)
{
    must(count <= DOCKERFILE_WORDS_MAX);
    for (size_t i = 0; i < count; i++)
        must(words[i]);
}

static void check_instructions(const struct dockerfile *dockerfile)
{
    must(dockerfile->count >= 1 && dockerfile->count <= DOCKERFILE_INSTRUCTIONS_MAX);
    for (size_t i = 0; i < dockerfile->count; i++) {
        const struct dockerfile_instruction *one = &dockerfile->each[i];
        must(i == 0 || one->line > one[-1].line);
        must(one->name[0] && one->rest && one->heredoc_count <= DOCKERFILE_HEREDOCS_MAX);
        must(one->word_count > 0 || one->is_json);
        check_words(one->flags, one->flag_count);
        check_words(one->words, one->word_count);
        for (size_t k = 0; k < one->heredoc_count; k++)
            must(one->heredocs[k].name[0] && one->heredocs[k].content);
    }
}

/* ---- stages --------------------------------------------------------------------------------------------- */

static int find_base(void *arg, const char *name, struct image_config *ret, struct fail *fail)
{
    (void)arg;
    if (strncmp(name, "missing", 7) == 0)
        return fail_set(fail, -EINVAL, "no image is known as %s", name);
    ret->workdir = strdup("/base");
    return image_config_set(ret, "PATH", "/bin");
}

static void check_path(const char *path)
{
    must(path && path[0] == '/' && !path_climbs(path) && strlen(path) < PATH_MAX);
}

static size_t check_copy(const struct stage_step *step)
{
    size_t held = 0;
    check_path(step->destination);
    must(step->source_count + step->file_count > 0 && step->source_count <= STAGE_SOURCES_MAX && step->mode <= 07777);
    for (size_t i = 0; i < step->source_count; i++) {
        must(!path_climbs(step->sources[i]) && strlen(step->sources[i]) < PATH_MAX);
        held += strlen(step->sources[i]);
    }
    for (size_t i = 0; i < step->file_count; i++)
        held += strlen(step->files[i].content);
    return held;
}

static size_t check_step(const struct stage_step *step, size_t stage)
{
    must(step->from_stage < (int)stage && (step->from == NULL || step->from_stage < 0));
    must(step->environment.bytes <= IMAGE_VARIABLES_BYTES_MAX);
    if (step->kind == STEP_RUN)
        must(step->script ? step->argv_count == 0 : step->argv_count > 0);
    else if (step->kind == STEP_WORKDIR)
        check_path(step->destination);
    return step->kind == STEP_COPY || step->kind == STEP_ADD ? check_copy(step) : 0;
}

static void check_stages(const struct build_stages *stages)
{
    size_t held = 0;
    must(stages->target < stages->count && stages->each[stages->target].is_needed);
    for (size_t i = 0; i < stages->count; i++) {
        const struct build_stage *stage = &stages->each[i];
        must(stage->base_stage < (int)i && stage->base && stage->base[0]);
        must(stage->is_needed || stage->step_count == 0);
        must(!stage->environment.user || task_user_is_valid(stage->environment.user));
        for (size_t k = 0; k < stage->step_count; k++)
            held += check_step(&stage->steps[k], i);
        if (stage->environment.workdir)
            check_path(stage->environment.workdir);
    }
    must(held <= STAGES_EXPANDED_MAX);
}

/* Worked out without what it copies from, its environment is the same. */
static void check_environment(const struct image_config *one, const struct image_config *two)
{
    must(one->variable_count == two->variable_count);
    for (size_t i = 0; i < one->variable_count; i++)
        must(strcmp(one->variables[i], two->variables[i]) == 0);
    must(strcmp(one->user ? one->user : "", two->user ? two->user : "") == 0);
    must(strcmp(one->workdir ? one->workdir : "", two->workdir ? two->workdir : "") == 0);
}

static void check_alone(const struct dockerfile *dockerfile, struct build_sources sources,
                        const struct build_stages *whole)
{
    AUTO_FREE struct build_stages *alone = calloc(1, sizeof(*alone));
    struct fail fail = {0};
    sources.environment_only = true;
    must(build_stages_make(dockerfile, &sources, alone, &fail) == 0 && alone->target == whole->target);
    check_environment(&alone->each[alone->target].environment, &whole->each[whole->target].environment);
    build_stages_finish(alone);
}

static void check_dockerfile(struct slice text)
{
    const char *given[] = {"TAG=2", "A=$B \"quoted\""};
    const struct task_variables args = {.each = given, .count = 2};
    const struct build_sources sources = {.args = &args, .find_base = find_base};
    AUTO_FREE struct build_stages *stages = calloc(1, sizeof(*stages));
    struct dockerfile dockerfile;
    struct fail fail = {0};
    int code = dockerfile_parse(text, &dockerfile, &fail);
    if (code == 0) {
        check_instructions(&dockerfile);
        code = build_stages_make(&dockerfile, &sources, stages, &fail);
    }
    must(code == 0 || code == -EINVAL);
    if (code == 0) {
        check_stages(stages);
        check_alone(&dockerfile, sources, stages);
    } else {
        check_refusal(text, &fail);
    }
    build_stages_finish(stages);
    dockerfile_finish(&dockerfile);
}

/* ---- patterns --------------------------------------------------------------------------------------------- */

static bool tries_set(const char **pattern, char c)
{
    const char *at = *pattern + 1;
    const bool is_negated = *at == '^' || *at == '!';
    bool found = false;
    at += is_negated;
    for (const char *first = at; *at && (*at != ']' || at == first); at++) {
        at += *at == '\\' && at[1];
        const char low = *at;
        if (at[1] == '-' && at[2] && at[2] != ']') {
            at += 2;
            at += *at == '\\' && at[1];
        }
        found = found || (c >= low && c <= *at);
    }
    *pattern = at + 1;
    return *at == ']' && c != '/' && found != is_negated;
}

/* Every way that there is. `is_first`: a name of the pattern begins here. */
static bool tries(const char *pattern, const char *text, bool is_first)
{
    if (!*pattern)
        return !*text;
    if (pattern[0] == '*' && pattern[1] == '*') {
        const char *rest = pattern + 2 + (pattern[2] == '/');
        if (!*rest)
            return true;
        for (const char *at = text; is_first && at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
            if (tries(rest, at, pattern[2] == '/'))
                return true;
        if (is_first)
            return false;
    }
    if (*pattern == '*')
        return tries(pattern + 1, text, false) || (*text && *text != '/' && tries(pattern, text + 1, false));
    if (!*text)
        return false;
    if (*pattern == '[')
        return tries_set(&pattern, *text) && tries(pattern, text + 1, false);
    if (*pattern == '?')
        return *text != '/' && tries(pattern + 1, text + 1, false);
    pattern += *pattern == '\\' && pattern[1];
    return *pattern == *text && tries(pattern + 1, text + 1, *pattern == '/');
}

static size_t count_stars(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '*';
    return count;
}

static void check_ignore(struct slice text, const char *path)
{
    struct ignore ignore;
    int code = ignore_parse(text, &ignore);
    must(code == 0 || code == -E2BIG);
    for (size_t i = 0; i < ignore.count; i++) {
        const char *pattern = ignore.patterns[i] + 1;
        must(ignore.patterns[i][0] == '!' || ignore.patterns[i][0] == ' ');
        must(*pattern && *pattern != '/' && strlen(pattern) < PATH_MAX);
        if (strlen(pattern) <= TRIED_MAX && strlen(path) <= TRIED_MAX && count_stars(pattern) <= 5)
            must(glob_match(pattern, path) == tries(pattern, path, true));
    }
    const int decided = ignore_decide(&ignore, path, IGNORE_NOTHING);
    must(decided >= IGNORE_NOTHING && decided < (int)ignore.count);
    ignore_finish(&ignore);
}

/* ---- the input --------------------------------------------------------------------------------------------- */

/* What stands before the next form feed. */
static struct slice take_part(struct slice *input)
{
    const uint8_t *end = input->len ? memchr(input->data, '\f', input->len) : NULL;
    const struct slice part = slice_of(input->data, end ? (size_t)(end - input->data) : input->len);
    const size_t used = part.len + (end != NULL);
    *input = slice_of(input->data + used, input->len - used);
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    const struct slice dockerfile = take_part(&input), ignore = take_part(&input);
    AUTO_FREE char *path = strndup((const char *)input.data, input.len);
    must(path);
    check_dockerfile(dockerfile);
    if (!memchr(ignore.data, '\0', ignore.len))
        check_ignore(ignore, path);
    return 0;
}
