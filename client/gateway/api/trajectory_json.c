#include "client/gateway/api/trajectory_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/json_text.h"
#include "client/json/json.h"

static bool print(const struct sluice_trajectory *trajectory, struct buffer *ret)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return false;
    json_trajectory(out, trajectory);
    const bool is_whole = fclose(out) == 0 && buffer_append(ret, text, len);
    free(text);
    return is_whole;
}

bool trajectory_json(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no)
{
    struct trajectory_view view = {0};
    bool is_read = trajectory_view_read(&view, message, no);
    if (is_read && !print(&view.out, ret))
        is_read = refuse(no, REFUSAL_QUEUE_FULL, "", "out of memory");
    trajectory_view_finish(&view);
    return is_read;
}

/* ---- summaries ---------------------------------------------------------------------------------- */

struct sums {
    uint64_t turns, sampled, prompt;
};

static void add_trace(const struct sluice_trace *trace, struct sums *sums)
{
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct sluice_turn *turn = &trace->turns[i];
        if (strcmp(turn->role, "assistant") != 0)
            continue;
        sums->turns++;
        sums->sampled += turn->length;
        sums->prompt += turn->prompt_tokens;
    }
}

static void append_traces(const struct sluice_trajectory *t, struct buffer *ret)
{
    struct sums sums = {0};
    for (size_t i = 0; i < t->trace_count; i++)
        add_trace(&t->traces[i], &sums);
    json_text_printf(ret, ",\"turns\":%u,\"sampled_tokens\":%u,\"prompt_tokens\":%u,\"traces\":%u,\"reasons\":[",
                     sums.turns, sums.sampled, sums.prompt, (uint64_t)t->trace_count);
    const char *joint = "";
    for (size_t i = 0; i < t->trace_count; i++)
        if (*t->traces[i].reason) {
            buffer_append_str(ret, joint);
            json_text_append(ret, slice_from_str(t->traces[i].reason));
            joint = ",";
        }
    buffer_append_str(ret, "]");
}

bool trajectory_summary(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no)
{
    struct trajectory_view view = {0};
    const struct sluice_trajectory *t = &view.out;
    if (!trajectory_view_read(&view, message, no)) {
        trajectory_view_finish(&view);
        return false;
    }
    json_text_printf(ret,
                     "{\"stream\":%s,\"seq\":%u,\"rollout\":%s,\"group\":%s,\"task\":%s,\"sample\":%u,\"attempt\":%u,"
                     "\"outcome\":%s,\"trainable\":%j,\"reward\":",
                     t->stream, t->seq, t->rollout, t->group, t->task, (uint64_t)t->sample, (uint64_t)t->attempt,
                     t->outcome, t->trainable ? "true" : "false");
    if (t->has_reward)
        json_text_append_number(ret, t->reward);
    else
        buffer_append_str(ret, "null");
    json_text_printf(ret, ",\"wait_ms\":%u,\"init_ms\":%u,\"run_ms\":%u,\"eval_ms\":%u,\"ended_ms\":%u", t->wait_ms,
                     t->init_ms, t->run_ms, t->eval_ms, t->ended_ms);
    json_text_printf(ret, ",\"truncated\":%j,\"end\":%s,\"detail\":%s,\"engine\":%s", t->truncated ? "true" : "false",
                     t->end, t->detail, t->engine);
    append_traces(t, ret);
    buffer_append_str(ret, "}");
    trajectory_view_finish(&view);
    return true;
}
