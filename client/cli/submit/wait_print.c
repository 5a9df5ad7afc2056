/* wait_print.c - what `sluice submit --wait` shows at its end: a table, or JSON. */
#include "client/cli/submit/wait_print.h"

#include <stdlib.h>
#include <string.h>

#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "client/cli/submit/wait.h"
#include "common/base/cleanup.h"

enum { REWARDS_SHOWN = 16, OUTCOMES_MAX = 8 };

static void list_rewards(const struct wait_group *group, struct buffer *out)
{
    unsigned count = group->line->samples;
    for (unsigned i = 0; i < count && i < REWARDS_SHOWN; i++) {
        const struct wait_sample *sample = &group->samples[i];
        buffer_append_str(out, i ? " " : "");
        if (sample->has_reward)
            buffer_printf(out, "%.3g", sample->reward);
        else
            buffer_append_str(out, "-");
    }
    if (count > REWARDS_SHOWN)
        buffer_printf(out, " ... (%u more)", count - REWARDS_SHOWN);
}

/* "3 ok, 1 infra" in the order in which they first occur. */
static void count_outcomes(const struct wait_group *group, struct buffer *out)
{
    struct {
        const char *outcome;
        unsigned count;
    } tally[OUTCOMES_MAX] = {0};
    size_t kinds = 0;
    for (unsigned i = 0; i < group->line->samples; i++) {
        const char *outcome = *group->samples[i].outcome ? group->samples[i].outcome : "running";
        size_t k = 0;
        while (k < kinds && strcmp(tally[k].outcome, outcome) != 0)
            k++;
        if (k == OUTCOMES_MAX)
            k--; /* names nobody knows yet share the last place */
        if (k == kinds)
            tally[kinds++].outcome = outcome;
        tally[k].count++;
    }
    for (size_t k = 0; k < kinds; k++)
        buffer_printf(out, "%s%u %s", k ? ", " : "", tally[k].count, tally[k].outcome);
}

/* False where no rollout of it has a reward. */
static bool mean_reward(const struct wait_group *group, double *ret)
{
    unsigned count = 0;
    double sum = 0;
    for (unsigned i = 0; i < group->line->samples; i++) {
        count += group->samples[i].has_reward;
        sum += group->samples[i].reward;
    }
    *ret = count ? sum / count : 0;
    return count > 0;
}

static void mean_of(const struct wait_group *group, struct buffer *out)
{
    double mean;
    if (mean_reward(group, &mean))
        buffer_printf(out, "%.3f", mean);
    else
        buffer_append_str(out, "-");
}

static void add_cell(struct columns *columns, const struct wait_group *group,
                     void (*fill)(const struct wait_group *group, struct buffer *out))
{
    AUTO_BUFFER text = {0};
    fill(group, &text);
    columns_add(columns, "%.*s", (int)text.len, (const char *)text.data);
}

void wait_print(const struct wait *wait, const struct tasks_file *tasks, FILE *out)
{
    AUTO_COLUMNS columns = {.count = 5};
    static const char *const heads[] = {"task", "group", "mean", "outcomes", "rewards"};
    for (size_t i = 0; i < columns.count; i++)
        columns_add(&columns, "%s", heads[i]);
    for (size_t i = 0; i < tasks->count; i++) {
        const struct wait_group *group = wait_find((struct wait *)wait, tasks->lines[i].name);
        columns_add(&columns, "%s", tasks->lines[i].id);
        columns_add(&columns, "%s", tasks->lines[i].name);
        add_cell(&columns, group, mean_of);
        add_cell(&columns, group, count_outcomes);
        add_cell(&columns, group, list_rewards);
    }
    columns_print(&columns, out);
}

static void print_rollout(const struct wait_group *group, unsigned i, FILE *out)
{
    const struct wait_sample *sample = &group->samples[i];
    fprintf(out, "%s{\"rollout\": ", i ? ", " : "");
    char name[GROUP_NAME_SIZE + 16];
    snprintf(name, sizeof(name), "%s/%u", group->name, i);
    json_text(out, name);
    fprintf(out, ", \"outcome\": ");
    json_text(out, *sample->outcome ? sample->outcome : "running");
    fprintf(out, ", \"trainable\": %s", sample->trainable ? "true" : "false");
    if (sample->has_reward) {
        fprintf(out, ", \"reward\": ");
        json_number(out, sample->reward);
    }
    fputc('}', out);
}

void wait_print_json(const struct wait *wait, const struct tasks_file *tasks, FILE *out)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct wait_group *group = wait_find((struct wait *)wait, tasks->lines[i].name);
        double mean;
        fputc('{', out);
        tasks_line_json(out, &tasks->lines[i], wait->stream);
        if (mean_reward(group, &mean)) {
            fprintf(out, ", \"mean_reward\": ");
            json_number(out, mean);
        }
        fprintf(out, ", \"rollouts\": [");
        for (unsigned k = 0; k < group->line->samples; k++)
            print_rollout(group, k, out);
        fprintf(out, "]}\n");
    }
    fflush(out);
}
