#include <jansson.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/up.h"
#include "common/tame.h"

enum { PROBE_MS = 2000 };

static int add_engine(struct sluice_client *client, const char *url)
{
    struct fail fail;
    if (!engine_url_is_valid(url))
        return cli_usage(&command_engine, "'%s' is no http or https URL", url);
    int failed = sluice_engine_add(client, url);
    if (failed)
        return cli_failed(client, failed);
    printf("registered %s\n", url);
    if (engine_probe(url, PROBE_MS, &fail))
        cli_say("warning: from here it does not answer: %s", fail.text);
    return EXITS_OK;
}

static int remove_engine(struct sluice_client *client, const char *url)
{
    int failed = sluice_engine_remove(client, url);
    if (failed)
        return cli_failed(client, failed);
    printf("removed %s; rollouts that use it now go on\n", url);
    return EXITS_OK;
}

static int list_engines(struct sluice_client *client, const char *url)
{
    (void)url;
    const char *text;
    int failed = sluice_status(client, &text);
    if (failed)
        return cli_failed(client, failed);
    json_t *status = json_loads(text, 0, NULL);
    const json_t *engines = json_object_get(status, "engines");
    for (size_t i = 0; i < json_array_size(engines); i++) {
        const json_t *engine = json_array_get(engines, i);
        const char *name = json_string_value(json_object_get(engine, "url"));
        tame_print(stdout, "%s  %lld rollouts\n", name ? name : "?",
                   (long long)json_integer_value(json_object_get(engine, "live")));
    }
    if (!json_array_size(engines))
        printf("no engine is registered\n");
    json_decref(status);
    return EXITS_OK;
}

static const struct {
    const char *name;
    size_t arguments; /* the verb itself included */
    int (*run)(struct sluice_client *client, const char *url);
} verbs[] = {
    {"add", 2, add_engine},
    {"list", 1, list_engines},
    {"remove", 2, remove_engine},
};

static int run_engine(const struct invocation *in)
{
    for (size_t i = 0; i < ROWS(verbs); i++) {
        if (strcmp(verbs[i].name, in->arguments[0]) != 0)
            continue;
        if (verbs[i].arguments != in->argument_count)
            return cli_usage(in->command, "engine %s %s", verbs[i].name,
                             verbs[i].arguments == 2 ? "wants one URL" : "takes no URL");
        AUTO_CLIENT *client = cli_connect(in);
        return client ? verbs[i].run(client, in->arguments[1]) : EXITS_FAILED;
    }
    return cli_usage(in->command, "'%s' is none of add, list, remove", in->arguments[0]);
}

const struct command command_engine = {
    .name = "engine",
    .arguments = "add URL | list | remove URL",
    .brief = "Registers, lists and removes LLM inference servers",
    .doc = "A rollout is placed on the engine that has the fewest at that moment. Registering one twice is\n"
           "registering it once; one that is removed gets no more rollouts.\n",
    .example = "sluice engine add http://gpu1:8000\n"
               "sluice engine list\n"
               "sluice engine remove http://gpu1:8000\n",
    .arguments_min = 1,
    .arguments_max = 2,
    .run = run_engine,
};
