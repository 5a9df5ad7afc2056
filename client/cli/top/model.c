#include "client/cli/top/model.h"
#include "client/json/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const json_t *model_part(const struct model *model, const char *key) { return json_object_get(model->status, key); }

static struct model_sample sample_of(const json_t *status)
{
    struct model_sample sample = {.uptime_ms = told_number(status, "uptime_ms"), .tokens = -1};
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
        sample.ended[i] = told_number(json_object_get(status, "rollouts"), outcome_wire(i));
    return sample;
}

/* A start later nothing counted before compares. */
static void keep_sample(struct model *model, const json_t *status)
{
    const struct model_sample sample = sample_of(status);
    const int64_t epoch = told_number(status, "epoch");
    const struct model_sample *last = model->sample_count ? &model->samples[model->sample_count - 1] : NULL;
    if (last && (epoch != model->epoch || sample.uptime_ms < last->uptime_ms))
        model->sample_count = 0;
    model->epoch = epoch;
    if (model->sample_count == MODEL_SAMPLES)
        memmove(model->samples, model->samples + 1, --model->sample_count * sizeof(*model->samples));
    model->samples[model->sample_count++] = sample;
}

void model_hear(struct model *model, json_t *status, json_t *list, int64_t now_ms)
{
    if (!json_is_object(status)) {
        json_decref(status);
        json_decref(list);
        model_miss(model, "the broker's status is not a JSON object");
        return;
    }
    json_decref(model->status);
    json_decref(model->list);
    model->status = status;
    model->list = list;
    model->heard_ms = now_ms;
    model->away[0] = '\0';
    keep_sample(model, status);
}

/* One line for each engine: the name, labels in braces, the number. */
void model_hear_metrics(struct model *model, const char *metrics)
{
    static const char name[] = "sluice_sampled_tokens_total";
    double sum = 0;
    for (const char *line = metrics; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, name, sizeof(name) - 1) != 0)
            continue;
        const char *end = line + strcspn(line, "\n"), *number = end;
        while (number > line && number[-1] != ' ')
            number--;
        sum += strtod(number, NULL);
    }
    if (model->sample_count && sum < 9e18)
        model->samples[model->sample_count - 1].tokens = (int64_t)sum;
}

void model_miss(struct model *model, const char *why) { snprintf(model->away, sizeof(model->away), "%s", why); }

void model_finish(struct model *model)
{
    json_decref(model->status);
    json_decref(model->list);
    *model = (struct model){0};
}

double model_rate(const struct model *model, enum outcome outcome)
{
    if (model->sample_count < 2)
        return -1;
    const struct model_sample *first = model->samples, *last = &model->samples[model->sample_count - 1];
    const int64_t passed_ms = last->uptime_ms - first->uptime_ms;
    const int64_t ended = last->ended[outcome] - first->ended[outcome];
    return passed_ms > 0 && ended >= 0 ? (double)ended * 1000 / (double)passed_ms : -1;
}

double model_token_rate(const struct model *model)
{
    if (model->sample_count < 2)
        return -1;
    const struct model_sample *first = model->samples, *last = &model->samples[model->sample_count - 1];
    const int64_t passed_ms = last->uptime_ms - first->uptime_ms;
    if (first->tokens < 0 || last->tokens < first->tokens || passed_ms <= 0)
        return -1;
    return (double)(last->tokens - first->tokens) * 1000 / (double)passed_ms;
}

double model_rate_of_all(const struct model *model)
{
    double sum = 0;
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++) {
        const double rate = model_rate(model, i);
        if (rate < 0)
            return -1;
        sum += rate;
    }
    return sum;
}
