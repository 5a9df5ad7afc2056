#include "client/lib/stream/trajectory_view.h"

#include <stdlib.h>

void trajectory_view_finish(struct trajectory_view *view)
{
    free(view->texts);
    free(view->traces);
    free(view->turns);
    free(view->samplings);
    free(view->spans);
    free(view->columns);
    free(view->stretches);
    free(view->messages);
    free(view->breaches);
    free(view->touched);
    free(view->metrics);
    verdict_view_finish(&view->verdict);
    if (view->has_record)
        record_finish(&view->record);
    *view = (struct trajectory_view){0};
}

/* Every text of the message, with room for its NUL, in one block. */
static bool copy_texts(struct trajectory_view *view, const struct msg_trajectory *in)
{
    struct sluice_trajectory *out = &view->out;
    const struct {
        const char **to;
        struct slice from;
    } texts[] = {
        {&out->stream, in->stream}, {&out->rollout, in->rollout},       {&out->group, in->group},
        {&out->task, in->task},     {&out->outcome, in->outcome},       {&out->detail, in->detail},
        {&out->engine, in->engine}, {&out->init_layer, in->init_layer}, {&out->metadata, in->metadata},
    };
    enum { COUNT = sizeof(texts) / sizeof(*texts) };
    size_t size = 0;
    for (size_t i = 0; i < COUNT; i++)
        size += texts[i].from.len + 1;
    char *at = view->texts = calloc(1, size);
    if (!at)
        return false;
    for (size_t i = 0; i < COUNT; i++) {
        if (texts[i].from.len)
            memcpy(at, texts[i].from.data, texts[i].from.len);
        *texts[i].to = at;
        at += texts[i].from.len + 1;
    }
    return true;
}

static void copy_numbers(struct sluice_trajectory *out, const struct msg_trajectory *in)
{
    out->seq = in->seq;
    out->sample = (unsigned)in->sample;
    out->attempt = (unsigned)in->attempt;
    out->trainable = in->trainable;
    out->has_reward = in->has_reward;
    out->reward = in->has_reward ? in->reward : 0.0;
    out->raw_reward = in->has_raw_reward ? in->raw_reward : out->reward;
    out->group_size = in->has_group_size ? (unsigned)in->group_size : 0;
    out->group_ended = in->has_group_ended ? (unsigned)in->group_ended : 0;
    out->wait_ms = in->wait_ms;
    out->init_ms = in->init_ms;
    out->run_ms = in->run_ms;
    out->eval_ms = in->eval_ms;
    out->ended_ms = in->ended_ms;
}

static double show_seconds(struct record_seconds seconds) { return seconds.is_known ? seconds.value : -1; }

/* What turns and traces point to, one array for each kind; `at` moves on. */
struct room {
    struct sluice_turn *turn;
    struct sluice_column *column;
    struct sluice_stretch *stretch;
    struct sluice_sampling *sampling;
    struct sluice_span *span;
};

static const struct sluice_sampling *show_sampling(const struct record_sampling *sampling, struct room *at)
{
    if (!sampling)
        return NULL;
    *at->sampling = (struct sluice_sampling){.temperature = sampling->temperature,
                                             .top_p = sampling->top_p,
                                             .min_p = sampling->min_p,
                                             .top_k = sampling->top_k,
                                             .max_tokens = sampling->max_tokens,
                                             .seed = sampling->seed};
    return at->sampling++;
}

static const struct sluice_span *show_spans(const struct record_turn *turn, struct room *at)
{
    const struct sluice_span *first = at->span;
    for (size_t i = 0; i < turn->version_count; i++)
        *at->span++ = (struct sluice_span){turn->versions[i].offset, turn->versions[i].length,
                                           turn->versions[i].version};
    return first;
}

static struct sluice_turn show_turn(const struct record_turn *turn, struct room *at)
{
    return (struct sluice_turn){.offset = turn->offset,
                                .length = turn->length,
                                .role = turn->role,
                                .finish = turn->finish,
                                .masked = turn->masked,
                                .engine = turn->engine,
                                .version = turn->version,
                                .prompt_tokens = turn->prompt_tokens,
                                .cached_tokens = turn->cached_tokens,
                                .seconds = turn->seconds,
                                .queue_seconds = show_seconds(turn->queue_seconds),
                                .prefill_seconds = show_seconds(turn->prefill_seconds),
                                .decode_seconds = show_seconds(turn->decode_seconds),
                                .sampling = show_sampling(turn->sampling, at),
                                .versions = show_spans(turn, at),
                                .version_count = turn->version_count};
}

static struct sluice_column show_column(const struct record_extra *column)
{
    return (struct sluice_column){.name = column->name,
                                  .type = column->type,
                                  .offset = column->offset,
                                  .rows = column->rows,
                                  .shape = column->shape.sizes,
                                  .shape_count = column->shape.count,
                                  .counts = column->counts.data,
                                  .values = column->values.data,
                                  .value_bytes = column->values.bytes};
}

static struct sluice_trace show_trace(const struct record_trace *trace, const struct room *at)
{
    return (struct sluice_trace){.token_ids = trace->token_ids,
                                 .mask = trace->mask,
                                 .logprobs = trace->logprobs,
                                 .token_count = trace->token_count,
                                 .turns = at->turn,
                                 .turn_count = trace->turn_count,
                                 .columns = at->column,
                                 .column_count = trace->column_count,
                                 .messages = at->stretch,
                                 .stretch_count = trace->messages.count,
                                 .reason = trace->reason,
                                 .label = trace->label,
                                 .template_digest = trace->template_digest,
                                 .tokenizer_digest = trace->tokenizer_digest};
}

static bool show_sandbox(struct trajectory_view *view)
{
    const struct record_sandbox *used = view->record.sandbox;
    if (!used)
        return true;
    view->breaches = calloc(used->breach_count + 1, sizeof(*view->breaches));
    if (!view->breaches)
        return false;
    for (size_t i = 0; i < used->breach_count; i++)
        view->breaches[i] = (struct sluice_breach){used->breaches[i].limit, used->breaches[i].count};
    view->sandbox = (struct sluice_sandbox){.peak_memory_kib = used->peak_memory_kib,
                                            .peak_disk_bytes = used->peak_disk_bytes,
                                            .peak_inodes = used->peak_inodes,
                                            .peak_processes = used->peak_processes,
                                            .cpu_seconds = used->cpu_seconds,
                                            .commands = used->commands,
                                            .timed_out = used->timed_out,
                                            .output_bytes = used->output_bytes,
                                            .cut_bytes = used->cut_bytes,
                                            .breaches = view->breaches,
                                            .breach_count = used->breach_count};
    return true;
}

static bool show_tamper(struct trajectory_view *view)
{
    const struct record_tamper *tamper = view->record.tamper;
    if (!tamper)
        return true;
    view->touched = calloc(tamper->file_count + 1, sizeof(*view->touched));
    if (!view->touched)
        return false;
    for (size_t i = 0; i < tamper->file_count; i++)
        view->touched[i] = (struct sluice_touched){tamper->files[i].what, tamper->files[i].path};
    view->tamper = (struct sluice_tamper){tamper->count, view->touched, tamper->file_count};
    return true;
}

static bool is_in_verdict(const struct verdict *verdict, const char *name)
{
    for (size_t i = 0; i < verdict->metric_count; i++)
        if (strcmp(verdict->metrics[i].name, name) == 0)
            return true;
    return false;
}

/* What was noted before the evaluation, behind the verdict's, which hide those of the same names. */
static bool add_noted(struct trajectory_view *view)
{
    const struct record_noted *noted = view->record.noted;
    struct sluice_trajectory *out = &view->out;
    if (!view->has_record || !noted)
        return true;
    view->metrics = calloc(out->metric_count + noted->metric_count + 1, sizeof(*view->metrics));
    if (!view->metrics)
        return false;
    if (out->metric_count)
        memcpy(view->metrics, out->metrics, out->metric_count * sizeof(*view->metrics));
    for (size_t i = 0; i < noted->metric_count; i++)
        if (!is_in_verdict(&view->verdict.verdict, noted->metrics[i].name))
            view->metrics[out->metric_count++] = (struct sluice_metric){noted->metrics[i].name,
                                                                        noted->metrics[i].value};
    out->metrics = view->metrics;
    return true;
}

static bool make_room(struct trajectory_view *view)
{
    const struct record *record = &view->record;
    size_t turns = 0, spans = 0, columns = 0, stretches = 0;
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        turns += trace->turn_count;
        columns += trace->column_count;
        stretches += trace->messages.count;
        for (size_t k = 0; k < trace->turn_count; k++)
            spans += trace->turns[k].version_count;
    }
    view->traces = calloc(record->trace_count + 1, sizeof(*view->traces));
    view->turns = calloc(turns + 1, sizeof(*view->turns));
    view->samplings = calloc(turns + 1, sizeof(*view->samplings));
    view->spans = calloc(spans + 1, sizeof(*view->spans));
    view->columns = calloc(columns + 1, sizeof(*view->columns));
    view->stretches = calloc(stretches + 1, sizeof(*view->stretches));
    view->messages = calloc(record->message_count + 1, sizeof(*view->messages));
    return view->traces && view->turns && view->samplings && view->spans && view->columns && view->stretches &&
           view->messages;
}

static void show_traces(struct trajectory_view *view)
{
    struct room at = {view->turns, view->columns, view->stretches, view->samplings, view->spans};
    for (size_t i = 0; i < view->record.trace_count; i++) {
        const struct record_trace *trace = &view->record.traces[i];
        view->traces[i] = show_trace(trace, &at);
        for (size_t k = 0; k < trace->turn_count; k++)
            *at.turn++ = show_turn(&trace->turns[k], &at);
        for (size_t k = 0; k < trace->column_count; k++)
            *at.column++ = show_column(&trace->columns[k]);
        for (size_t k = 0; k < trace->messages.count; k++)
            *at.stretch++ = (struct sluice_stretch){trace->messages.runs[k].offset, trace->messages.runs[k].length};
    }
}

static bool show_record(struct trajectory_view *view)
{
    const struct record *record = &view->record;
    if (!make_room(view))
        return false;
    show_traces(view);
    for (size_t i = 0; i < record->message_count; i++) {
        const struct record_message *said = &record->messages[i];
        view->messages[i] = (struct sluice_message){.role = said->role,
                                                    .content = said->content,
                                                    .tool = said->tool,
                                                    .exit_status = said->exit_status,
                                                    .sampled = said->sampled};
    }
    return show_sandbox(view) && show_tamper(view);
}

static void show_all(struct trajectory_view *view)
{
    struct sluice_trajectory *out = &view->out;
    out->agent = view->has_record ? view->record.agent : "";
    out->template_digest = view->has_record ? view->record.template_digest : "";
    out->tokenizer_digest = view->has_record ? view->record.tokenizer_digest : "";
    out->logprobs_mode = view->has_record ? view->record.logprobs_mode : "";
    out->end = view->has_record ? view->record.end : "";
    out->truncated = view->has_record && view->record.truncated;
    out->run_attempt = view->has_record ? view->record.attempt : 0;
    out->traces = view->traces;
    out->trace_count = view->has_record ? view->record.trace_count : 0;
    out->messages = view->messages;
    out->message_count = view->has_record ? view->record.message_count : 0;
    out->sandbox = view->has_record && view->record.sandbox ? &view->sandbox : NULL;
    out->tamper = view->has_record && view->record.tamper ? &view->tamper : NULL;
}

bool trajectory_view_read(struct trajectory_view *view, const struct msg_trajectory *message, struct refusal *no)
{
    trajectory_view_finish(view);
    bool good = copy_texts(view, message) || refuse(no, REFUSAL_MALFORMED, "", "out of memory for a trajectory");
    if (good && message->has_record) {
        view->has_record = true;
        good = record_decode(message->record, &view->record, no) &&
               (show_record(view) ||
                refuse(no, REFUSAL_MALFORMED, "record", "out of memory for a trajectory's record"));
    }
    if (good && message->has_verdict)
        good = verdict_view_read(&view->verdict, message->verdict, no);
    if (good) {
        copy_numbers(&view->out, message);
        verdict_view_show(&view->verdict, &view->out);
        show_all(view);
        good = add_noted(view) || refuse(no, REFUSAL_MALFORMED, "record", "out of memory for a trajectory's metrics");
    }
    if (!good)
        trajectory_view_finish(view);
    return good;
}
