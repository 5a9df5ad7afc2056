#include "workers/dockerfile/steps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/variables.h"
#include "workers/files/dirtree.h"

void stage_step_finish(struct stage_step *step)
{
    image_config_finish(&step->environment);
    dockerfile_words_finish(step->argv, step->argv_count);
    dockerfile_words_finish(step->sources, step->source_count);
    for (size_t i = 0; i < step->file_count; i++) {
        free(step->files[i].name);
        free(step->files[i].content);
    }
    free(step->files);
    free(step->script);
    free(step->destination);
    free(step->from);
}

void step_reading_finish(struct step_reading *reading)
{
    image_config_finish(&reading->declared);
    dockerfile_words_finish(reading->shell, reading->shell_count);
}

static int add_text(char ***texts, size_t *count, const char *text)
{
    char **more = reallocarray(*texts, *count + 1, sizeof(**texts));
    if (!more)
        return -ENOMEM;
    *texts = more;
    more[*count] = strdup(text);
    return more[*count] ? (++*count, 0) : -ENOMEM;
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static int add_step(struct step_reading *reading, const struct dockerfile_instruction *one, enum step_kind kind,
                    struct stage_step **ret)
{
    struct build_stage *stage = reading->stage;
    struct stage_step *more = reallocarray(stage->steps, stage->step_count + 1, sizeof(*more));
    if (!more)
        return fail_memory(reading->fail);
    stage->steps = more;
    *ret = &more[stage->step_count++];
    **ret = (struct stage_step){.kind = kind, .line = one->line, .from_stage = -1};
    return image_config_copy(&stage->environment, &(*ret)->environment) ? 0 : fail_memory(reading->fail);
}

/* Of what is no path, as it is too long, nothing is kept. */
static int check_length(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *path)
{
    return strlen(path) < PATH_MAX ? 0
                                   : dockerfile_refuse(reading->fail, one->line, "%s: a path of more than %d bytes",
                                                       one->name, PATH_MAX - 1);
}

/* Absolute, of the working directory where it is relative. */
static int place_of(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *path,
                    char **ret)
{
    const char *workdir = reading->stage->environment.workdir;
    *ret = path[0] == '/' ? strdup(path) : dirtree_join(workdir && strcmp(workdir, "/") != 0 ? workdir : "", path);
    return *ret ? check_length(reading, one, *ret) : fail_memory(reading->fail);
}

static int read_workdir(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    struct stage_step *step;
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *place = NULL;
    int code = variables_expand(reading, one, one->rest, &path);
    if (code == 0)
        code = place_of(reading, one, path, &place);
    if (code < 0)
        return code;
    if (path_climbs(place))
        return dockerfile_refuse(reading->fail, one->line, "WORKDIR %.200s: without \"..\"", path);
    free(reading->stage->environment.workdir);
    reading->stage->environment.workdir = strdup(place);
    code = reading->stage->environment.workdir ? add_step(reading, one, STEP_WORKDIR, &step)
                                               : fail_memory(reading->fail);
    if (code == 0)
        step->destination = take_ptr(&place);
    return code;
}

static int read_user(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    AUTO_FREE char *user = NULL;
    int code = variables_expand(reading, one, one->rest, &user);
    if (code < 0)
        return code;
    if (!task_user_is_valid(user))
        return dockerfile_refuse(reading->fail, one->line, "USER %.100s: a user, or user:group, by name or number",
                                 user);
    free(reading->stage->environment.user);
    reading->stage->environment.user = take_ptr(&user);
    return 0;
}

static int read_shell(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    if (!one->is_json || one->word_count == 0)
        return dockerfile_refuse(reading->fail, one->line, "SHELL wants a list: SHELL [\"/bin/bash\", \"-c\"]");
    dockerfile_words_finish(reading->shell, reading->shell_count);
    reading->shell = NULL;
    reading->shell_count = 0;
    int code = 0;
    for (size_t i = 0; i < one->word_count && code == 0; i++)
        code = add_text(&reading->shell, &reading->shell_count, one->words[i]);
    return code < 0 ? fail_memory(reading->fail) : 0;
}

/* ---- RUN ---------------------------------------------------------------------------------------------- */

static int refuse_flag(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *flag)
{
    if (strcmp(one->name, "RUN") == 0)
        return dockerfile_refuse(reading->fail, one->line,
                                 "RUN %.60s is not supported: caches, secrets and mounts of BuildKit are not there; "
                                 "a network is by build.network",
                                 flag);
    return dockerfile_refuse(reading->fail, one->line, "%s has no %.60s here", one->name, flag);
}

/* What BuildKit mounts for speed alone may be left out. */
static int check_run_flags(const struct step_reading *reading, const struct dockerfile_instruction *one)
{
    for (size_t i = 0; i < one->flag_count; i++)
        if (strncmp(one->flags[i], "--mount=type=cache", 18) != 0 &&
            strncmp(one->flags[i], "--mount=type=tmpfs", 18) != 0 && strcmp(one->flags[i], "--network=default") != 0)
            return refuse_flag(reading, one, one->flags[i]);
    return 0;
}

/* The whole of it as the shell is to see it, heredocs too; a lone heredoc is the script itself. */
static int shell_text(const struct dockerfile_instruction *one, char **ret)
{
    AUTO_BUFFER text = {0};
    const bool is_lone = one->heredoc_count == 1 && one->word_count == 1;
    buffer_printf(&text, "%s", is_lone ? one->heredocs[0].content : one->rest);
    for (size_t i = 0; i < one->heredoc_count && !is_lone; i++)
        buffer_printf(&text, "\n%s%s", one->heredocs[i].content, one->heredocs[i].name);
    *ret = buffer_take_str(&text);
    return *ret ? 0 : -ENOMEM;
}

/* One that no program could be started with is refused before it is tried. */
static int add_argument(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *text,
                        struct stage_step *step)
{
    if (strlen(text) > RUN_WORD_MAX)
        return dockerfile_refuse(reading->fail, one->line,
                                 "RUN of more than %d bytes: COPY what it runs from a heredoc, and run that",
                                 RUN_WORD_MAX);
    return add_text(&step->argv, &step->argv_count, text) < 0 ? fail_memory(reading->fail) : 0;
}

static int fill_argv(const struct step_reading *reading, const struct dockerfile_instruction *one,
                     struct stage_step *step)
{
    static char sh[] = "/bin/sh", dash_c[] = "-c";
    char *const usual[] = {sh, dash_c};
    char *const *words = one->is_json ? one->words : reading->shell ? reading->shell : usual;
    const size_t count = one->is_json ? one->word_count : reading->shell ? reading->shell_count : 2;
    AUTO_FREE char *text = NULL;
    int code = !one->is_json && shell_text(one, &text) < 0 ? fail_memory(reading->fail) : 0;
    if (code == 0 && text && strncmp(text, "#!", 2) == 0 && one->heredoc_count == 1 && one->word_count == 1) {
        step->script = take_ptr(&text);
        return 0;
    }
    for (size_t i = 0; i < count && code == 0; i++)
        code = add_argument(reading, one, words[i], step);
    return code == 0 && text ? add_argument(reading, one, text, step) : code;
}

static int read_run(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    struct stage_step *step;
    int code = check_run_flags(reading, one);
    if (code == 0 && one->is_json && one->word_count == 0)
        code = dockerfile_refuse(reading->fail, one->line, "RUN [] runs nothing");
    if (code == 0)
        code = add_step(reading, one, STEP_RUN, &step);
    if (code == 0)
        code = variables_add_args(reading, one, &step->environment);
    return code == 0 ? fill_argv(reading, one, step) : code;
}

/* ---- COPY and ADD --------------------------------------------------------------------------------------- */

static int read_chmod(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *text,
                      struct stage_step *step)
{
    char *end;
    step->mode = (unsigned)strtoul(text, &end, 8);
    if (*text && *end == '\0' && step->mode > 0 && step->mode <= 07777)
        return 0;
    return dockerfile_refuse(reading->fail, one->line, "--chmod=%.40s: in octal, such as 0755", text);
}

const char *step_copy_from(const char *flag) { return strncmp(flag, "--from=", 7) == 0 ? flag + 7 : NULL; }

/* Which stages are needed is known before any variable is: Docker expands none there either. */
static int read_from(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *from,
                     struct stage_step *step)
{
    if (!from[0] || step->from || strpbrk(from, "$\"'\\"))
        return dockerfile_refuse(reading->fail, one->line,
                                 "COPY --from=%.100s: one stage or image, by its name as it is, without variables or "
                                 "quotes",
                                 from);
    step->from = strdup(from);
    return step->from ? 0 : fail_memory(reading->fail);
}

static int read_copy_flag(const struct step_reading *reading, const struct dockerfile_instruction *one,
                          const char *flag, struct stage_step *step)
{
    AUTO_FREE char *text = NULL;
    const char *from = step->kind == STEP_COPY ? step_copy_from(flag) : NULL;
    if (from)
        return read_from(reading, one, from, step);
    int code = variables_expand(reading, one, flag, &text);
    if (code < 0)
        return code;
    if (strncmp(text, "--chmod=", 8) == 0)
        return read_chmod(reading, one, text + 8, step);
    if (strncmp(text, "--chown=", 8) == 0 || strcmp(text, "--link") == 0 || strncmp(text, "--link=", 7) == 0)
        return 0;
    return refuse_flag(reading, one, text);
}

/* What heredocs hold, of those whose names are not quoted expanded. */
static int add_heredocs(const struct step_reading *reading, const struct dockerfile_instruction *one,
                        struct stage_step *step)
{
    step->files = calloc(one->heredoc_count ? one->heredoc_count : 1, sizeof(*step->files));
    for (size_t i = 0; i < one->heredoc_count && step->files; i++) {
        const struct dockerfile_heredoc *from = &one->heredocs[i];
        struct dockerfile_heredoc *to = &step->files[step->file_count++];
        to->name = strdup(from->name);
        int code = from->is_expanded ? variables_expand_heredoc(reading, one, from, &to->content) : 0;
        if (code < 0)
            return code;
        if (!from->is_expanded)
            to->content = strdup(from->content);
        if (!to->name || !to->content)
            return fail_memory(reading->fail);
    }
    return step->files ? 0 : fail_memory(reading->fail);
}

static bool is_url(const char *text) { return strstr(text, "://") || strncmp(text, "git@", 4) == 0; }

static int add_source(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *word,
                      struct stage_step *step)
{
    AUTO_FREE char *path = NULL;
    if (!one->is_json && strncmp(word + strspn(word, "0123456789"), "<<", 2) == 0)
        return 0;
    int code = variables_expand(reading, one, word, &path);
    if (code < 0)
        return code;
    if (is_url(path))
        return dockerfile_refuse(reading->fail, one->line,
                                 "%s of %.200s: nothing is fetched by %s; RUN curl does, with a grant of "
                                 "build.network, or put it into the context",
                                 one->name, path, one->name);
    if (path_climbs(path))
        return dockerfile_refuse(reading->fail, one->line, "%s %.200s leads out of the context", one->name, path);
    if ((code = check_length(reading, one, path)) < 0)
        return code;
    if (step->source_count == STAGE_SOURCES_MAX)
        return dockerfile_refuse(reading->fail, one->line, "more than %d sources", STAGE_SOURCES_MAX);
    return add_text(&step->sources, &step->source_count, path) < 0 ? fail_memory(reading->fail) : 0;
}

static int check_destination(const struct step_reading *reading, const struct dockerfile_instruction *one,
                             const struct stage_step *step)
{
    const char *place = step->destination;
    const size_t len = strlen(place), count = step->source_count + step->file_count;
    if (path_climbs(place))
        return dockerfile_refuse(reading->fail, one->line, "%s to %.200s: without \"..\"", one->name, place);
    if (count > 1 && place[len - 1] != '/')
        return dockerfile_refuse(reading->fail, one->line, "%s of several sources: the destination must end with /",
                                 one->name);
    return count > 0 ? 0 : dockerfile_refuse(reading->fail, one->line, "%s wants sources and a destination", one->name);
}

/* "." and "dir/." are directories, too. */
static int read_destination(const struct step_reading *reading, const struct dockerfile_instruction *one,
                            const char *word, struct stage_step *step)
{
    AUTO_FREE char *path = NULL;
    int code = variables_expand(reading, one, word, &path);
    if (code == 0)
        code = place_of(reading, one, path, &step->destination);
    if (code < 0)
        return code;
    const size_t len = strlen(step->destination);
    if (len >= 2 && strcmp(step->destination + len - 2, "/.") == 0)
        step->destination[len - 1] = '\0';
    return check_destination(reading, one, step);
}

static int read_copy(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    struct stage_step *step;
    int code = add_step(reading, one, strcmp(one->name, "ADD") == 0 ? STEP_ADD : STEP_COPY, &step);
    if (code == 0 && one->word_count < 2)
        code = dockerfile_refuse(reading->fail, one->line, "%s wants sources and a destination", one->name);
    for (size_t i = 0; i < one->flag_count && code == 0; i++)
        code = read_copy_flag(reading, one, one->flags[i], step);
    if (code == 0)
        code = add_heredocs(reading, one, step);
    for (size_t i = 0; i + 1 < one->word_count && code == 0; i++)
        code = add_source(reading, one, one->words[i], step);
    return code == 0 ? read_destination(reading, one, one->words[one->word_count - 1], step) : code;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

static int read_nothing(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    (void)reading, (void)one;
    return 0;
}

int step_read(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    static const struct {
        const char *name;
        int (*read)(struct step_reading *reading, const struct dockerfile_instruction *one);
    } readers[] = {{"RUN", read_run},           {"COPY", read_copy},       {"ADD", read_copy},
                   {"ENV", variables_read_env}, {"WORKDIR", read_workdir}, {"ARG", variables_read_arg},
                   {"USER", read_user},         {"SHELL", read_shell}};
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
        if (strcmp(readers[i].name, one->name) == 0)
            return readers[i].read(reading, one);
    return read_nothing(reading, one);
}
