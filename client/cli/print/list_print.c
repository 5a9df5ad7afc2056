#include "client/cli/print/list_print.h"

#include <string.h>

#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "client/json/told.h"
#include "common/cmdline/cmdline.h"
#include "common/base/buffer.h"
#include "common/base/cleanup.h"

enum { WORDS_MAX = 16 };

static const char *text_of(const json_t *rollout, const char *key)
{
    const char *text = json_string_value(json_object_get(rollout, key));
    return text ? text : "-";
}

static void add_time(struct columns *columns, uint64_t ms)
{
    char text[32];
    print_duration(ms, text, sizeof(text));
    columns_add(columns, "%s", text);
}

static void add_reward(struct columns *columns, const json_t *reward)
{
    if (json_is_number(reward))
        columns_add(columns, "%.3g", json_number_value(reward));
    else
        columns_add(columns, "-");
}

/* ---- rollouts ------------------------------------------------------------------------------- */

static void add_ended(struct columns *columns, const json_t *rollout)
{
    const char *detail = text_of(rollout, "detail");
    columns_add(columns, "%s", text_of(rollout, "rollout"));
    columns_add(columns, "%s", text_of(rollout, "stream"));
    columns_add(columns, "%s", text_of(rollout, "outcome"));
    add_reward(columns, json_object_get(rollout, "reward"));
    columns_add(columns, "%lld", told_number(rollout, "attempt"));
    add_time(columns, told_number(rollout, "wait_ms") + told_number(rollout, "init_ms") +
                          told_number(rollout, "run_ms") + told_number(rollout, "eval_ms"));
    columns_add(columns, "%.*s", (int)strcspn(detail, "\n"), detail);
}

/* "turn 3, bash", or why it does not get on. */
static void add_progress(struct columns *columns, const json_t *rollout)
{
    const char *why = text_of(rollout, "why"), *tool = text_of(rollout, "tool");
    const long long turn = told_number(rollout, "turn");
    AUTO_BUFFER words = {0};
    if (turn)
        buffer_printf(&words, "turn %lld", turn);
    if (strcmp(tool, "-") != 0)
        buffer_printf(&words, "%s%s", words.len ? ", " : "", tool);
    if (strcmp(why, "-") != 0 || !words.len)
        buffer_printf(&words, "%s%.*s", words.len ? "; " : "", (int)strcspn(why, "\n"), why);
    columns_add(columns, "%.*s", (int)words.len, (const char *)words.data);
}

static void add_live(struct columns *columns, const json_t *rollout)
{
    columns_add(columns, "%s", text_of(rollout, "rollout"));
    columns_add(columns, "%s", text_of(rollout, "stream"));
    columns_add(columns, "%s", text_of(rollout, "stage"));
    columns_add(columns, "%s", text_of(rollout, "state"));
    columns_add(columns, "%lld", told_number(rollout, "attempt"));
    add_time(columns, told_number(rollout, "for_ms"));
    columns_add(columns, "%s", text_of(rollout, "worker"));
    add_progress(columns, rollout);
}

void list_print_rollouts(const json_t *rollouts, bool ended, FILE *out)
{
    static const char *const ended_heads[] = {"rollout", "stream", "outcome", "reward", "attempt", "time", "detail"};
    static const char *const live_heads[] = {"rollout", "stream", "stage", "state", "attempt", "for", "worker", "at"};
    AUTO_COLUMNS columns = {.count = ended ? ROWS(ended_heads) : ROWS(live_heads)};
    const json_t *rollout;
    size_t i;
    for (i = 0; i < columns.count; i++)
        columns_add(&columns, "%s", ended ? ended_heads[i] : live_heads[i]);
    json_array_foreach(rollouts, i, rollout)
    {
        if (ended)
            add_ended(&columns, rollout);
        else
            add_live(&columns, rollout);
    }
    columns_print(&columns, out);
}

void list_print_json(const json_t *rollouts, FILE *out)
{
    const json_t *rollout;
    size_t i;
    json_array_foreach(rollouts, i, rollout)
    {
        AUTO_FREE char *json = json_dumps(rollout, JSON_COMPACT);
        if (json)
            json_line(out, json);
    }
}

/* ---- groups --------------------------------------------------------------------------------- */

static struct slice group_of(const json_t *rollout)
{
    const char *name = text_of(rollout, "rollout"), *slash = strrchr(name, '/');
    return slice_of(name, slash ? (size_t)(slash - name) : strlen(name));
}

struct tally {
    const char *words[WORDS_MAX];
    unsigned counts[WORDS_MAX], rollouts, rewarded;
    size_t word_count;
    double reward_sum;
};

static void count(struct tally *tally, const json_t *rollout, bool ended)
{
    const char *word = text_of(rollout, ended ? "outcome" : "stage");
    const json_t *reward = json_object_get(rollout, "reward");
    size_t at = 0;
    while (at < tally->word_count && strcmp(tally->words[at], word) != 0)
        at++;
    if (at == WORDS_MAX)
        at--; /* words that nobody knows yet share the last place */
    if (at == tally->word_count)
        tally->words[tally->word_count++] = word;
    tally->counts[at]++;
    tally->rollouts++;
    tally->rewarded += json_is_number(reward);
    tally->reward_sum += json_number_value(reward);
}

static void add_group(struct columns *columns, const json_t *first, const struct tally *tally, bool ended)
{
    const struct slice name = group_of(first);
    AUTO_BUFFER words = {0};
    for (size_t i = 0; i < tally->word_count; i++)
        buffer_printf(&words, "%s%u %s%s", i ? ", " : "", tally->counts[i], ended ? "" : "in ", tally->words[i]);
    columns_add(columns, "%.*s", SLICE_ARG(name));
    columns_add(columns, "%s", text_of(first, "stream"));
    columns_add(columns, "%s", text_of(first, "task"));
    columns_add(columns, "%u", tally->rollouts);
    columns_add(columns, "%.*s", (int)words.len, (const char *)words.data);
    if (tally->rewarded)
        columns_add(columns, "%.3f", tally->reward_sum / tally->rewarded);
    else
        columns_add(columns, "-");
}

/* Rollouts of a group need not stand together: each group's are gathered at its first. */
void list_print_groups(const json_t *rollouts, bool ended, FILE *out)
{
    static const char *const heads[] = {"group", "stream", "task", "rollouts", "of them", "mean reward"};
    AUTO_COLUMNS columns = {.count = sizeof(heads) / sizeof(*heads)};
    const size_t all = json_array_size(rollouts);
    for (size_t i = 0; i < columns.count; i++)
        columns_add(&columns, "%s", heads[i]);
    for (size_t i = 0; i < all; i++) {
        const json_t *first = json_array_get(rollouts, i);
        struct tally tally = {0};
        bool is_first = true;
        for (size_t k = 0; k < all && is_first; k++) {
            const json_t *rollout = json_array_get(rollouts, k);
            if (!slice_equal(group_of(rollout), group_of(first)))
                continue;
            is_first = k >= i;
            count(&tally, rollout, ended);
        }
        if (is_first)
            add_group(&columns, first, &tally, ended);
    }
    columns_print(&columns, out);
}
