#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/duration.h"

struct common {
    const char *broker, *key;
    bool help, allow_plaintext;
};

const struct option common_options[] = {
    {"broker", OPTION_TEXT, offsetof(struct common, broker), "URL",
     "The broker's FRONT. Default: $SLUICE_BROKER, else tcp://127.0.0.1:5750."},
    {"key", OPTION_TEXT, offsetof(struct common, key), "FILE",
     "Who you are, for a broker that asks: a file from `sluice keys add`. Default: $SLUICE_KEY."},
    {"allow-plaintext", OPTION_FLAG, offsetof(struct common, allow_plaintext), NULL,
     "Goes over a network without a key; so does SLUICE_ALLOW_PLAINTEXT=1."},
    {"help", OPTION_FLAG, offsetof(struct common, help), NULL, "Shows this."},
};
const size_t common_option_count = ROWS(common_options);

/* Where an option is known, and the struct that its value goes into. */
struct found {
    const struct option *option;
    void *into;
};

static bool find_in(const struct option *options, size_t count, void *into, const char *name,
                    size_t name_len, struct found *ret)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == name_len && strncmp(options[i].name, name, name_len) == 0) {
            *ret = (struct found){&options[i], into};
            return true;
        }
    return false;
}

static void *field_of(const struct found *found)
{
    return (char *)found->into + found->option->offset;
}

static int set_number(const struct command *command, const struct found *found, const char *text)
{
    const struct option *option = found->option;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || end == text || text[0] < '0' || text[0] > '9' || number < option->min ||
        number > option->max)
        return cli_usage(command, "--%s wants a number from %llu to %llu, not '%s'", option->name,
                         (unsigned long long)option->min, (unsigned long long)option->max, text);
    *(uint64_t *)field_of(found) = number;
    return EXITS_OK;
}

static int set_duration(const struct command *command, const struct found *found, const char *text)
{
    const struct option *option = found->option;
    char min[32], max[32];
    uint64_t ms;
    duration_format(option->min, min, sizeof(min));
    duration_format(option->max, max, sizeof(max));
    if (!duration_parse(text, &ms) || ms < option->min || ms > option->max)
        return cli_usage(command, "--%s wants a time from %s to %s, such as 90s or 1h30m, not '%s'",
                         option->name, min, max, text);
    *(uint64_t *)field_of(found) = ms;
    return EXITS_OK;
}

static int set_value(const struct command *command, const struct found *found, const char *text)
{
    struct texts *texts = field_of(found);
    switch (found->option->kind) {
    case OPTION_NUMBER:
        return set_number(command, found, text);
    case OPTION_DURATION:
        return set_duration(command, found, text);
    case OPTION_LIST:
        if (texts->count == TEXTS_MAX)
            return cli_usage(command, "--%s may be given %d times", found->option->name, TEXTS_MAX);
        texts->items[texts->count++] = text;
        return EXITS_OK;
    case OPTION_TEXT:
        *(const char **)field_of(found) = text;
        return EXITS_OK;
    case OPTION_FLAG:
        break;
    }
    *(bool *)field_of(found) = true;
    return EXITS_OK;
}

/* One "--name", "--name=value" or "--name value"; *at moves past it. */
static int take_option(const struct invocation *in, struct common *common, int argc, char **argv,
                       int *at)
{
    const struct command *command = in->command;
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t name_len = equals ? (size_t)(equals - name) : strlen(name);
    struct found found;
    ++*at;
    if (!find_in(command->options, command->option_count, in->options, name, name_len, &found) &&
        !find_in(common_options, common_option_count, common, name, name_len, &found))
        return cli_usage(command, "unknown option --%.*s", (int)name_len, name);
    if (found.option->kind == OPTION_FLAG && equals)
        return cli_usage(command, "--%s takes no value", found.option->name);
    if (found.option->kind == OPTION_FLAG)
        return set_value(command, &found, "");
    if (!equals && found.option->bare_ms) {
        *(uint64_t *)field_of(&found) = found.option->bare_ms;
        return EXITS_OK;
    }
    if (!equals && *at == argc)
        return cli_usage(command, "--%s wants %s", found.option->name, found.option->value);
    return set_value(command, &found, equals ? equals + 1 : argv[(*at)++]);
}

static int check_complete(const struct invocation *in)
{
    const struct command *command = in->command;
    for (size_t i = 0; i < command->option_count; i++) {
        const struct found found = {&command->options[i], in->options};
        if (found.option->required && !*(const char **)field_of(&found))
            return cli_usage(command, "--%s %s is missing", found.option->name,
                             found.option->value);
    }
    if (in->argument_count < command->arguments_min)
        return cli_usage(command, "%s is missing", command->arguments);
    if (in->argument_count > command->arguments_max)
        return cli_usage(command, "'%s' is one argument too many",
                         in->arguments[command->arguments_max]);
    return EXITS_OK;
}

static bool prepare(const struct command *command, int argc, struct invocation *ret)
{
    *ret = (struct invocation){.command = command};
    ret->options = calloc(1, command->options_size + 1);
    ret->arguments = calloc((size_t)argc + 1, sizeof(*ret->arguments));
    if (!ret->options || !ret->arguments)
        return false;
    for (size_t i = 0; i < command->option_count; i++) {
        const struct found found = {&command->options[i], ret->options};
        if (found.option->kind == OPTION_NUMBER || found.option->kind == OPTION_DURATION)
            *(uint64_t *)field_of(&found) = found.option->preset;
    }
    return true;
}

int options_parse(const struct command *command, int argc, char **argv, struct invocation *ret,
                  bool *help)
{
    struct common common = {0};
    bool only_arguments = false;
    if (!prepare(command, argc, ret)) {
        cli_say("out of memory");
        return EXITS_FAILED;
    }
    for (int at = 0; at < argc;) {
        if (!only_arguments && strcmp(argv[at], "--") == 0) {
            only_arguments = true;
            at++;
        } else if (!only_arguments && strncmp(argv[at], "--", 2) == 0) {
            int failed = take_option(ret, &common, argc, argv, &at);
            if (failed)
                return failed;
        } else if (!only_arguments && strcmp(argv[at], "-h") == 0) {
            common.help = true;
            at++;
        } else {
            ret->arguments[ret->argument_count++] = argv[at++];
        }
    }
    ret->broker = common.broker;
    ret->key = common.key;
    ret->allow_plaintext = common.allow_plaintext;
    *help = common.help;
    return common.help ? EXITS_OK : check_complete(ret);
}

void invocation_finish(struct invocation *in)
{
    free(in->options);
    free(in->arguments);
    *in = (struct invocation){0};
}
