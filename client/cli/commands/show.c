#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/print/list_print.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "client/cli/print/trajectory_print.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

enum { ROLLOUTS_PER_GROUP_SHOWN = 1000 };

struct show_options {
    bool tokens, json;
};

/* Rollouts of the group that have ended, or have not; *listed: how many. */
static int show_part(struct sluice_client *client, const char *group, bool ended, bool json, size_t *listed)
{
    const char *text;
    int failed = sluice_list(
        client, &(struct sluice_filter){.group = group, .ended = ended, .limit = ROLLOUTS_PER_GROUP_SHOWN}, &text);
    if (failed)
        return failed;
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollouts = json_object_get(answer, "rollouts");
    if (json)
        list_print_json(rollouts, stdout);
    else if (json_array_size(rollouts))
        list_print_rollouts(rollouts, ended, stdout);
    *listed += json_array_size(rollouts);
    json_decref(answer);
    return 0;
}

static int show_group(struct sluice_client *client, const char *group, bool json)
{
    size_t listed = 0;
    int failed = show_part(client, group, true, json, &listed);
    if (!failed)
        failed = show_part(client, group, false, json, &listed);
    if (failed)
        return cli_failed(client);
    if (!listed && !json)
        sanitize_print(stdout, "every rollout of %s has ended and was acknowledged: none is kept\n", group);
    return EXITS_OK;
}

static char *json_of_state(const char *name, const char *state)
{
    json_t *object = json_pack("{s: s, s: s}", "rollout", name, "state", state);
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

/* One that has not ended, as `list --json` has it; where it ended meanwhile, as it was. */
static int show_live_json(struct sluice_client *client, const char *name, const char *state)
{
    const char *text;
    AUTO_FREE char *group = strndup(name, strcspn(name, "/")), *line = NULL;
    AUTO_FREE char *was = json_of_state(name, state);
    if (!group || !was)
        return cli_failed(client);
    const int failed = sluice_list(client, &(struct sluice_filter){.group = group, .limit = ROLLOUTS_PER_GROUP_SHOWN},
                                   &text);
    if (failed)
        return cli_failed(client);
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollout;
    size_t i;
    json_array_foreach(json_object_get(answer, "rollouts"), i, rollout)
    {
        const char *is = json_string_value(json_object_get(rollout, "rollout"));
        if (is && !line && strcmp(is, name) == 0)
            line = json_dumps(rollout, JSON_COMPACT);
    }
    json_decref(answer);
    json_line(stdout, line ? line : was);
    return EXITS_OK;
}

static int run_show(const struct invocation *in)
{
    const struct show_options *options = in->options;
    const struct sluice_trajectory *trajectory;
    const char *state;
    const char *name = in->arguments[0];
    if (!(strchr(name, '/') ? cli_is_rollout(in->command, name) : cli_is_name(in->command, "GROUP", name)))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    if (!strchr(in->arguments[0], '/'))
        return show_group(client, in->arguments[0], options->json);
    int failed = sluice_get(client, in->arguments[0], &trajectory, &state);
    if (failed)
        return cli_failed(client);
    if (trajectory && options->json) {
        json_trajectory(stdout, trajectory);
    } else if (trajectory) {
        print_end(trajectory);
        print_said(trajectory);
        print_used(trajectory, options->tokens);
    } else if (options->json) {
        return show_live_json(client, in->arguments[0], state);
    } else {
        sanitize_print(stdout, "%s has not ended: %s\n", in->arguments[0], state);
    }
    return EXITS_OK;
}

static const struct option options[] = {
    {"tokens", OPTION_FLAG, offsetof(struct show_options, tokens), NULL,
     "Show every token id too, with those that the policy sampled marked."},
    {"json", OPTION_FLAG, offsetof(struct show_options, json), NULL,
     "Print one JSON object: the trajectory, or what `list --json` prints."},
};

const struct command command_show = {
    COMMAND_LINE("show"),
    .line.arguments = "ROLLOUT | GROUP",
    .line.brief = "Shows one rollout as a person reads it, or all of a group in a table",
    .line.doc = "What was said by whom, tool calls with their output and exit status, the turns "
                "with their\n"
                "tokens and seconds, outcome and reward, and the time each stage took. For a "
                "rollout that has\n"
                "not ended: where it is, at which turn, and why it does not get on. A rollout is GROUP/NUMBER,\n"
                "from 0.\n",
    .line.example = "sluice show tasks-add-1f0c9b2a77/0\n"
                    "sluice show tasks-add-1f0c9b2a77/0 --tokens | less -R\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct show_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_show,
};
