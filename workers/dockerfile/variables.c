/* ARG and ENV, and what words of a line come to with them. */
#include "workers/dockerfile/variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/dockerfile/words.h"

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct scope {
    const struct image_config *first, *second;
};

static const char *find_in(void *arg, const char *name)
{
    const struct scope *scope = arg;
    const char *value = scope->first ? image_config_get(scope->first, name) : NULL;
    if (!value && scope->second)
        value = image_config_get(scope->second, name);
    return value || strcmp(name, "PATH") != 0 ? value : USUAL_PATH;
}

/* In words of the line. */
static int expand_word(const struct scope *scope, char escape, const struct dockerfile_instruction *one,
                       const char *word, char **ret, struct fail *fail)
{
    struct fail inner = {0};
    const struct expansion expansion = {.find = find_in, .arg = (void *)(uintptr_t)scope, .escape = escape};
    int code = word_expand(&expansion, word, ret, &inner);
    if (code == -ENOMEM)
        return fail_memory(fail);
    return code < 0 ? dockerfile_refuse(fail, one->line, "%s: %s", one->name, inner.text) : 0;
}

/* It takes of what all of them may come to. */
static int take_room(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *text)
{
    const size_t len = strlen(text);
    if (len > *reading->room)
        return dockerfile_refuse(reading->fail, one->line, "with its variables, the Dockerfile is longer than %d bytes",
                                 STAGES_EXPANDED_MAX);
    *reading->room -= len;
    return 0;
}

int variables_expand(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *word,
                     char **ret)
{
    const struct scope scope = {&reading->stage->environment, &reading->declared};
    int code = expand_word(&scope, reading->escape, one, word, ret, reading->fail);
    return code < 0 ? code : take_room(reading, one, *ret);
}

int variables_expand_heredoc(const struct step_reading *reading, const struct dockerfile_instruction *one,
                             const struct dockerfile_heredoc *heredoc, char **ret)
{
    struct fail inner = {0};
    const struct scope scope = {&reading->stage->environment, &reading->declared};
    const struct expansion expansion = {
        .find = find_in, .arg = (void *)(uintptr_t)&scope, .escape = reading->escape, .keeps_quotes = true};
    int code = word_expand(&expansion, heredoc->content, ret, &inner);
    if (code == -ENOMEM)
        return fail_memory(reading->fail);
    return code < 0 ? dockerfile_refuse(reading->fail, one->line, "the heredoc %s: %s", heredoc->name, inner.text)
                    : take_room(reading, one, *ret);
}

static int set_variable(struct fail *fail, const struct dockerfile_instruction *one, struct image_config *config,
                        const char *name, const char *value)
{
    int code = image_config_set(config, name, value);
    if (code == -ENOMEM)
        return fail_memory(fail);
    if (code == -E2BIG)
        return dockerfile_refuse(fail, one->line, "%s: more than %d variables or %d bytes of them", one->name,
                                 IMAGE_VARIABLES_MAX, IMAGE_VARIABLES_BYTES_MAX);
    return code < 0 ? dockerfile_refuse(fail, one->line, "%s: %.100s is not a variable's name", one->name, name) : 0;
}

static const char *find_given(const struct task_variables *args, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; args && i < args->count; i++)
        if (strncmp(args->each[i], name, len) == 0 && args->each[i][len] == '=')
            return args->each[i] + len + 1;
    return NULL;
}

static const char *find_usual(const char *name)
{
    static const char *const usual[][2] = {{"TARGETPLATFORM", "linux/" STEP_ARCHITECTURE},
                                           {"BUILDPLATFORM", "linux/" STEP_ARCHITECTURE},
                                           {"TARGETARCH", STEP_ARCHITECTURE},
                                           {"BUILDARCH", STEP_ARCHITECTURE},
                                           {"TARGETOS", "linux"},
                                           {"BUILDOS", "linux"}};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (strcmp(usual[i][0], name) == 0)
            return usual[i][1];
    return NULL;
}

static int read_arg_word(const struct dockerfile_instruction *one, const char *word, char escape,
                         const struct task_variables *args, const struct image_config *global, struct image_config *ret,
                         struct fail *fail)
{
    const struct scope scope = {ret, NULL};
    const size_t len = strcspn(word, "=");
    AUTO_FREE char *name = strndup(word, len);
    AUTO_FREE char *expanded = NULL;
    if (!name)
        return fail_memory(fail);
    const char *value = find_given(args, name);
    if (!value && word[len] == '=') {
        int code = expand_word(&scope, escape, one, word + len + 1, &expanded, fail);
        if (code < 0)
            return code;
        value = expanded;
    }
    if (!value && global)
        value = image_config_get(global, name);
    value = value ? value : find_usual(name);
    return value ? set_variable(fail, one, ret, name, value) : 0;
}

static int read_arg(const struct dockerfile_instruction *one, char escape, const struct task_variables *args,
                    const struct image_config *global, struct image_config *ret, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < one->word_count && code == 0; i++)
        code = read_arg_word(one, one->words[i], escape, args, global, ret, fail);
    return code;
}

int variables_read_global(const struct dockerfile_instruction *one, char escape, const struct task_variables *args,
                          struct image_config *ret, struct fail *fail)
{
    return read_arg(one, escape, args, NULL, ret, fail);
}

int variables_read_arg(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    return read_arg(one, reading->escape, reading->args, reading->global, &reading->declared, reading->fail);
}

static int read_env_pair(struct step_reading *reading, const struct dockerfile_instruction *one, const char *name,
                         const char *text, struct image_config *into)
{
    AUTO_FREE char *value = NULL;
    int code = variables_expand(reading, one, text, &value);
    return code < 0 ? code : set_variable(reading->fail, one, into, name, value);
}

/* NAME=VALUE ..., or NAME and all the rest. The values see what was before this line. */
int variables_read_env(struct step_reading *reading, const struct dockerfile_instruction *one)
{
    struct image_config into = {0};
    int code = image_config_copy(&reading->stage->environment, &into) ? 0 : fail_memory(reading->fail);
    const bool is_old = !strchr(one->words[0], '=');
    if (code == 0 && is_old && one->word_count < 2)
        code = dockerfile_refuse(reading->fail, one->line, "ENV %.100s has no value", one->words[0]);
    for (size_t i = 0; i < one->word_count && code == 0 && !is_old; i++) {
        const size_t len = strcspn(one->words[i], "=");
        AUTO_FREE char *name = strndup(one->words[i], len);
        if (one->words[i][len] != '=')
            code = dockerfile_refuse(reading->fail, one->line, "ENV: %.100s is no NAME=VALUE", one->words[i]);
        else
            code = name ? read_env_pair(reading, one, name, one->words[i] + len + 1, &into)
                        : fail_memory(reading->fail);
    }
    if (code == 0 && is_old) {
        const char *rest = one->rest + strlen(one->words[0]);
        code = read_env_pair(reading, one, one->words[0], rest + strspn(rest, " \t"), &into);
    }
    if (code < 0) {
        image_config_finish(&into);
        return code;
    }
    image_config_finish(&reading->stage->environment);
    reading->stage->environment = into;
    return 0;
}

int variables_add_args(const struct step_reading *reading, const struct dockerfile_instruction *one,
                       struct image_config *environment)
{
    int code = 0;
    for (size_t i = 0; i < reading->declared.variable_count && code == 0; i++) {
        const char *text = reading->declared.variables[i], *equals = strchr(text, '=');
        AUTO_FREE char *name = strndup(text, (size_t)(equals - text));
        if (!name)
            return fail_memory(reading->fail);
        if (!image_config_get(environment, name))
            code = set_variable(reading->fail, one, environment, name, equals + 1);
    }
    return code;
}
