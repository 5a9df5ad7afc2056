#include "tests/client/fake_broker_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

#include "schemas/trajectory/trajectory.h"

/* Like assert, in every build. */
void fake_need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "fake broker: no %s\n", what);
    abort();
}

/* ---- the thread's side --------------------------------------------------------------------- */

static void lock(const struct fake_broker *broker, void *socket)
{
    int yes = 1;
    if (!broker->secret[0])
        return;
    zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof(yes));
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, broker->secret, sizeof(broker->secret));
}

bool fake_bind(struct fake_broker *broker, int port)
{
    char endpoint[64];
    int none = 0, small = 4096;
    broker->front = zmq_socket(broker->context, ZMQ_ROUTER);
    broker->feed = zmq_socket(broker->context, ZMQ_XPUB);
    zmq_setsockopt(broker->front, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(broker->front, ZMQ_SNDHWM, &none, sizeof(none));
    zmq_setsockopt(broker->feed, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(broker->feed, ZMQ_SNDHWM, &broker->feed_queue, sizeof(broker->feed_queue));
    if (broker->feed_queue)
        zmq_setsockopt(broker->feed, ZMQ_SNDBUF, &small, sizeof(small));
    lock(broker, broker->front);
    lock(broker, broker->feed);
    snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", port);
    bool bound = zmq_bind(broker->front, endpoint) == 0;
    snprintf(endpoint, sizeof(endpoint), "tcp://127.0.0.1:%d", port + 2);
    if (bound && zmq_bind(broker->feed, endpoint) == 0)
        return true;
    zmq_close(broker->front);
    zmq_close(broker->feed);
    broker->front = broker->feed = NULL;
    return false;
}

void fake_unbind(struct fake_broker *broker)
{
    zmq_close(broker->front);
    zmq_close(broker->feed);
    broker->front = broker->feed = NULL;
    broker->subscribers = 0;
}

static void encode(enum message_id id, const void *message, struct buffer *out)
{
    struct refusal no;
    fake_need(message_encode(id, message, out, &no), no.text);
}

static struct slice spiced(const struct fake_broker *broker, char room[96], const char *text)
{
    snprintf(room, 96, "%s%s", text, broker->spice);
    return slice_from_str(room);
}

static void make_record(const struct fake_broker *broker, struct buffer *out)
{
    char tool[96], content[96];
    static const uint32_t ids[] = {101, 102, 103};
    static const float logprobs[] = {-0.5f, -0.25f};
    struct record record;
    struct refusal no;
    record_init(&record);
    strcpy(record.agent, "chat");
    strcpy(record.logprobs_mode, "raw");
    strcpy(record.template_digest, "sha256:template");
    strcpy(record.tokenizer_digest, "sha256:tokenizer");
    struct record_turn prompt = {.role = "prompt"};
    struct record_turn said = {.role = "assistant", .finish = "stop", .prompt_tokens = 1};
    snprintf(said.version, sizeof(said.version), "%s", broker->spice);
    spiced(broker, tool, "bash");
    bool good = record_start_trace(&record, "") && record_append(&record, &prompt, ids, NULL, 1, false) &&
                record_append(&record, &said, ids + 1, logprobs, 2, true) &&
                record_say(&record, "user", slice_from_str("1+1?"), NULL, 0) &&
                record_say_sampled(&record, spiced(broker, content, "2")) &&
                (!*broker->spice || record_say(&record, "tool", spiced(broker, content, "out"), tool, 1)) &&
                record_encode(&record, out, &no);
    fake_need(good, "a good message");
    record_finish(&record);
}

static void make_trajectory(struct fake_broker *broker, const char *stream, uint64_t seq, uint64_t tag,
                            struct buffer *out)
{
    const struct kept *kept = &broker->kept[seq - 1];
    struct buffer record = {0};
    char task[96], detail[96], engine[96];
    if (kept->broken)
        buffer_append_str(&record, "\xc1");
    else
        make_record(broker, &record);
    struct msg_trajectory message = {.tag = tag,
                                     .has_tag = tag != 0,
                                     .stream = slice_from_str(stream),
                                     .seq = seq,
                                     .rollout = slice_from_str(kept->rollout),
                                     .group = slice_from_str(kept->group),
                                     .task = spiced(broker, task, "add"),
                                     .detail = spiced(broker, detail, ""),
                                     .has_detail = *broker->spice != 0,
                                     .engine = spiced(broker, engine, ""),
                                     .has_engine = *broker->spice != 0,
                                     .sample = kept->sample,
                                     .attempt = 1,
                                     .outcome = slice_from_str("ok"),
                                     .trainable = !*broker->spice,
                                     .reward = (double)(kept->sample % 2),
                                     .has_reward = true,
                                     .run_ms = 5,
                                     .ended_ms = 1763697600000,
                                     .record = buffer_peek(&record),
                                     .has_record = true};
    encode(MSG_trajectory, &message, out);
    buffer_finish(&record);
}

static void make_head(struct fake_broker *broker, uint64_t tag, struct buffer *out)
{
    struct msg_stream_head message = {.tag = tag,
                                      .stream = slice_from_str(broker->stream),
                                      .first = broker->first,
                                      .head = broker->head,
                                      .pending = broker->pending,
                                      .epoch = broker->epoch,
                                      .start_id = broker->start_id,
                                      .has_start_id = true};
    encode(MSG_stream_head, &message, out);
}

static void publish(struct fake_broker *broker, const char *topic, const struct buffer *bytes)
{
    zmq_send(broker->feed, topic, strlen(topic), ZMQ_SNDMORE);
    zmq_send(broker->feed, bytes->data, bytes->len, 0);
}

void fake_send_kept(struct fake_broker *broker, const char *topic, const char *stream, uint64_t seq)
{
    struct buffer bytes = {0};
    make_trajectory(broker, stream, seq, 0, &bytes);
    publish(broker, topic, &bytes);
    buffer_finish(&bytes);
}

void fake_keep(struct fake_broker *broker, const char *group, unsigned sample, bool broken)
{
    if (broker->head == broker->capacity) {
        broker->capacity = broker->capacity ? broker->capacity * 2 : 64;
        broker->kept = realloc(broker->kept, broker->capacity * sizeof(*broker->kept));
        fake_need(broker->kept, "memory");
    }
    struct kept *kept = &broker->kept[broker->head++];
    *kept = (struct kept){.sample = sample, .broken = broken};
    snprintf(kept->group, sizeof(kept->group), "%s", group);
    snprintf(kept->rollout, sizeof(kept->rollout), "%s/%u", group, sample);
}

void fake_send_head(struct fake_broker *broker)
{
    struct buffer bytes = {0};
    make_head(broker, 0, &bytes);
    publish(broker, broker->topic, &bytes);
    buffer_finish(&bytes);
}

/* ---- requests ---------------------------------------------------------------------------------- */

static void reply(struct fake_broker *broker, zmq_msg_t *client, const struct buffer *bytes)
{
    zmq_msg_t copy;
    zmq_msg_init(&copy);
    zmq_msg_copy(&copy, client);
    zmq_msg_send(&copy, broker->front, ZMQ_SNDMORE);
    zmq_send(broker->front, bytes->data, bytes->len, 0);
}

static void refuse_to(struct buffer *out, uint64_t tag, const char *request, enum refusal_reason reason,
                      const char *text, bool for_good)
{
    bool is_full = reason == REFUSAL_QUEUE_FULL || reason == REFUSAL_DISK_LOW;
    struct msg_refused message = {.tag = tag,
                                  .request = slice_from_str(request),
                                  .reason = slice_from_str(refusal_wire(reason)),
                                  .text = slice_from_str(text),
                                  .retry_after_ms = 20,
                                  .has_retry_after_ms = is_full && !for_good};
    encode(MSG_refused, &message, out);
}

static void answer_fetch(struct fake_broker *broker, zmq_msg_t *client, const struct msg_stream_fetch *in)
{
    struct buffer out = {0};
    if (!slice_is(in->stream, broker->stream) || (broker->head == 0 && !broker->knows_stream)) {
        refuse_to(&out, in->tag, "stream.fetch", REFUSAL_UNKNOWN_STREAM, "no such stream", false);
    } else if (in->from < broker->first) {
        refuse_to(&out, in->tag, "stream.fetch", REFUSAL_FORGOTTEN, "these were acknowledged", false);
    } else {
        uint64_t limit = in->has_limit ? in->limit : 16;
        for (uint64_t seq = in->from; seq <= broker->head && seq < in->from + limit; seq++) {
            buffer_clear(&out);
            make_trajectory(broker, broker->stream, seq, in->tag, &out);
            reply(broker, client, &out);
        }
        buffer_clear(&out);
        make_head(broker, in->tag, &out);
    }
    if (!broker->holds_head || !in->has_limit || in->limit == 1)
        reply(broker, client, &out);
    else
        broker->holds_head = false;
    buffer_finish(&out);
}

static char *content_of(const struct msg_group_submit *in)
{
    struct buffer text = {0};
    buffer_printf(&text, "%.*s %llu %.*s", SLICE_ARG(in->stream), (unsigned long long)in->samples, SLICE_ARG(in->task));
    return buffer_take_str(&text);
}

static void finish_group(struct fake_broker *broker, const char *group, uint64_t samples)
{
    for (unsigned i = 0; i < samples; i++) {
        fake_keep(broker, group, i, false);
        fake_send_kept(broker, broker->topic, broker->stream, broker->head);
    }
}

static void note_options(struct fake_broker *broker, const char *names[2], const bool given[2],
                         const uint64_t values[2])
{
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        size_t room = sizeof(broker->last_options) - at;
        char *to = broker->last_options + at;
        at += (size_t)(given[i] ? snprintf(to, room, "%s%s=%llu", i ? " " : "", names[i], (unsigned long long)values[i])
                                : snprintf(to, room, "%s%s=-", i ? " " : "", names[i]));
    }
}

static void answer_submit(struct fake_broker *broker, const struct msg_group_submit *in, struct buffer *out)
{
    note_options(broker, (const char *[]){"priority", "lease_ms"}, (bool[]){in->has_priority, in->has_lease_ms},
                 (uint64_t[]){in->priority, in->lease_ms});
    char *content = content_of(in);
    unsigned i = 0;
    while (i < broker->group_count && !slice_is(in->group, broker->groups[i].name))
        i++;
    bool known = i < broker->group_count;
    if (known && strcmp(broker->groups[i].content, content) != 0) {
        refuse_to(out, in->tag, "group.submit", REFUSAL_GROUP_EXISTS, "the name is taken", false);
    } else if (!known && broker->full > 0) {
        broker->full--;
        refuse_to(out, in->tag, "group.submit", REFUSAL_QUEUE_FULL, "too many are queued", false);
    } else {
        struct msg_group_accepted message = {.tag = in->tag,
                                             .group = in->group,
                                             .samples = in->samples,
                                             .known = known,
                                             .warning = slice_from_str(broker->warning),
                                             .has_warning = *broker->warning != '\0'};
        encode(MSG_group_accepted, &message, out);
        if (!known) {
            fake_need(i < GROUPS_MAX, "room for a group");
            snprintf(broker->groups[i].name, sizeof(broker->groups[i].name), "%.*s", SLICE_ARG(in->group));
            broker->groups[i].content = content;
            content = NULL;
            broker->group_count++;
            if (broker->finish_at_once)
                finish_group(broker, broker->groups[i].name, in->samples);
        }
    }
    free(content);
}

static void answer_get(struct fake_broker *broker, const struct msg_rollout_get *in, struct buffer *out)
{
    for (uint64_t seq = 1; seq <= broker->head; seq++)
        if (slice_is(in->rollout, broker->kept[seq - 1].rollout)) {
            make_trajectory(broker, broker->stream, seq, in->tag, out);
            return;
        }
    if (!slice_is(in->rollout, "waiting/0") && !slice_is(in->rollout, "h/0")) {
        refuse_to(out, in->tag, "rollout.get", REFUSAL_UNKNOWN_ROLLOUT, "no such rollout", false);
        return;
    }
    struct msg_rollout_state message = {.tag = in->tag,
                                        .rollout = in->rollout,
                                        .stage = slice_from_str("run"),
                                        .state = slice_from_str("leased"),
                                        .attempt = 2,
                                        .worker = slice_from_str("w7"),
                                        .has_worker = true,
                                        .turn = 3,
                                        .has_turn = true,
                                        .tool = slice_from_str("bash"),
                                        .has_tool = true,
                                        .why = slice_from_str("http://gpu1:8000: HTTP 503; tried 2 times"),
                                        .has_why = true};
    encode(MSG_rollout_state, &message, out);
}

/* Every request's first field is its tag. */
static uint64_t tag_of(const void *in) { return *(const uint64_t *)in; }

static void answer_done(struct fake_broker *broker, enum message_id id, const void *in, struct buffer *out)
{
    struct msg_done message = {.tag = tag_of(in), .count = broker->done_count};
    const struct msg_worker_drain *drain = in;
    if (id == MSG_worker_drain)
        note_options(broker, (const char *[]){"grace_s", "is_host"}, (bool[]){drain->has_grace_s, true},
                     (uint64_t[]){drain->grace_s, drain->has_host});
    if (id == MSG_engine_add && ((const struct msg_engine_add *)in)->has_policy) {
        message.moved_from = slice_from_str("default");
        message.has_moved_from = true;
    }
    if (id == MSG_stream_ack)
        broker->acked = ((const struct msg_stream_ack *)in)->seq;
    encode(MSG_done, &message, out);
}

/* Always the same three of each kind; what was asked for is noted. */
static void answer_list(struct fake_broker *broker, const struct msg_rollout_list *in, struct buffer *out)
{
    static const char ended[] =
        "{\"matched\": 7, \"rollouts\": ["
        "{\"rollout\": \"g/1\", \"stream\": \"train\", \"task\": \"add\", \"seq\": 9, \"outcome\": \"ok\","
        " \"trainable\": true, \"reward\": 0.5, \"attempt\": 1, \"wait_ms\": 1, \"init_ms\": 2, \"run_ms\": 3000,"
        " \"eval_ms\": 4, \"ended_ms\": 1700000000000},"
        "{\"rollout\": \"g/0\", \"stream\": \"train\", \"task\": \"add\", \"seq\": 8, \"outcome\": \"infra\","
        " \"trainable\": false, \"attempt\": 3, \"wait_ms\": 1, \"init_ms\": 2, \"run_ms\": 3, \"eval_ms\": 4,"
        " \"ended_ms\": 1700000000000, \"detail\": \"engine: HTTP 500\"}]}";
    static const char live[] =
        "{\"matched\": 1, \"rollouts\": ["
        "{\"rollout\": \"h/0\", \"stream\": \"train\", \"task\": \"add\", \"stage\": \"run\", \"state\": \"leased\","
        " \"attempt\": 2, \"for_ms\": 61000, \"worker\": \"w7\", \"engine\": \"http://e:1\", \"image\": \"host\","
        " \"turn\": 3, \"tool\": \"bash\", \"why\": \"http://gpu1:8000: HTTP 503; tried 2 times\"}]}";
    const struct msg_rollouts message = {.tag = in->tag, .json = slice_from_str(in->ended ? ended : live)};
    note_options(broker, (const char *[]){"age_ms", "limit"}, (bool[]){in->has_age_ms, in->has_limit},
                 (uint64_t[]){in->age_ms, in->limit});
    encode(MSG_rollouts, &message, out);
}

static void note_number(struct fake_broker *broker, const char *name, bool given, uint64_t value)
{
    size_t at = strlen(broker->last_options), room = sizeof(broker->last_options) - at;
    if (given)
        snprintf(broker->last_options + at, room, " %s=%llu", name, (unsigned long long)value);
}

static void note_text(struct fake_broker *broker, const char *name, bool given, struct slice text)
{
    size_t at = strlen(broker->last_options), room = sizeof(broker->last_options) - at;
    if (given)
        snprintf(broker->last_options + at, room, " %s=%.*s", name, SLICE_ARG(text));
}

/* What it was told and no more, each with a blank before it. */
static void note_rule(struct fake_broker *broker, const struct msg_sampler_open *in)
{
    broker->last_options[0] = '\0';
    note_text(broker, "stream", true, in->stream);
    note_text(broker, "trainer", true, in->trainer);
    note_number(broker, "groups", true, in->groups);
    note_text(broker, "filter", in->has_filter, in->filter);
    note_text(broker, "surplus", in->has_surplus, in->surplus);
    note_number(broker, "window", in->has_window, in->window);
    note_number(broker, "over_sample", in->has_over_sample, in->over_sample);
    note_number(broker, "early", in->has_early, in->early);
    note_number(broker, "staleness", in->has_staleness, in->staleness);
    note_number(broker, "ahead", in->has_ahead, in->ahead);
    note_number(broker, "replace_max", in->has_replace_max, in->replace_max);
}

static void answer_state(uint64_t tag, struct slice stream, struct buffer *out)
{
    const struct msg_sampler_state message = {
        .tag = tag, .stream = stream, .batch = 3, .submitted = 96, .json = slice_from_str("{\"batch\":3,\"held\":0}")};
    encode(MSG_sampler_state, &message, out);
}

/* Three batches are full; the next one is not. */
static void answer_next(struct fake_broker *broker, const struct msg_sampler_next *in, struct buffer *out)
{
    char json[64];
    snprintf(json, sizeof(json), "{\"batch\":%llu}", (unsigned long long)in->batch);
    const struct msg_sampler_batch batch = {
        .tag = in->tag, .stream = in->stream, .batch = in->batch, .json = slice_from_str(json)};
    const struct msg_sampler_waits waits = {.tag = in->tag,
                                            .stream = in->stream,
                                            .batch = in->batch,
                                            .ready = 1,
                                            .held = 2,
                                            .submitted = 96,
                                            .why = slice_from_str("1 of 4 groups is ready")};
    broker->last_options[0] = '\0';
    note_text(broker, "trainer", true, in->trainer);
    note_number(broker, "wait_ms", in->has_wait_ms, in->wait_ms);
    if (in->batch <= 3)
        encode(MSG_sampler_batch, &batch, out);
    else
        encode(MSG_sampler_waits, &waits, out);
}

static void answer_close(struct fake_broker *broker, const struct msg_sampler_close *in, struct buffer *out)
{
    broker->last_options[0] = '\0';
    note_number(broker, "cancel", in->has_cancel, in->cancel);
    answer_done(broker, MSG_sampler_close, in, out);
}

static void answer(struct fake_broker *broker, zmq_msg_t *client, enum message_id id, const void *in)
{
    struct buffer out = {0};
    if (broker->garbage) {
        broker->garbage = false;
        buffer_append_str(&out, "\xc1 no message");
        reply(broker, client, &out);
        buffer_clear(&out);
    }
    if (id == MSG_stream_renew) { /* readers send it by themselves: no order is meant for it */
        answer_done(broker, id, in, &out);
    } else if (broker->refuse_with != REFUSAL_NONE && id != MSG_stream_fetch &&
               (broker->refuses_any || id == broker->refuse_only)) {
        refuse_to(&out, tag_of(in), message_get(id)->wire, broker->refuse_with, broker->refuse_text, broker->for_good);
        broker->refuse_with = REFUSAL_NONE;
    } else if (broker->answers_done) {
        broker->answers_done = false;
        answer_done(broker, id, in, &out);
    } else if (id == MSG_group_submit) {
        answer_submit(broker, in, &out);
    } else if (id == MSG_rollout_get) {
        answer_get(broker, in, &out);
    } else if (id == MSG_status_get) {
        struct msg_status message = {.tag = tag_of(in), .json = slice_from_str(broker->status)};
        encode(MSG_status, &message, &out);
        if (*broker->next_status)
            memcpy(broker->status, broker->next_status, sizeof(broker->status));
        broker->next_status[0] = '\0';
    } else if (id == MSG_metrics_get) {
        const bool is_openmetrics = ((const struct msg_metrics_get *)in)->openmetrics;
        struct msg_metrics message = {
            .tag = tag_of(in), .text = slice_from_str(is_openmetrics ? "sluice_epoch 1\n# EOF\n" : "sluice_epoch 1\n")};
        encode(MSG_metrics, &message, &out);
    } else if (id == MSG_rollout_list) {
        answer_list(broker, in, &out);
    } else if (id == MSG_sampler_open) {
        note_rule(broker, in);
        answer_state(tag_of(in), ((const struct msg_sampler_open *)in)->stream, &out);
    } else if (id == MSG_sampler_get) {
        answer_state(tag_of(in), ((const struct msg_sampler_get *)in)->stream, &out);
    } else if (id == MSG_sampler_next) {
        answer_next(broker, in, &out);
    } else if (id == MSG_sampler_close) {
        answer_close(broker, in, &out);
    } else {
        answer_done(broker, id, in, &out);
    }
    reply(broker, client, &out);
    buffer_finish(&out);
}

void fake_take_request(struct fake_broker *broker)
{
    zmq_msg_t client, request;
    zmq_msg_init(&client);
    zmq_msg_init(&request);
    zmq_msg_recv(&client, broker->front, 0);
    zmq_msg_recv(&request, broker->front, 0);
    struct slice bytes = slice_of(zmq_msg_data(&request), zmq_msg_size(&request));
    struct refusal no;
    enum message_id id;
    uint64_t in[256]; /* room for any message's struct */
    bool good = message_peek(bytes, &id, &no) && message_get(id)->size <= sizeof(in) &&
                message_decode(id, bytes, in, &no);
    fake_need(good, "a good message");
    broker->counts[id]++;
    if (broker->ignore > 0 && id != MSG_stream_renew)
        broker->ignore--;
    else if (id == MSG_stream_fetch)
        answer_fetch(broker, &client, (const void *)in);
    else
        answer(broker, &client, id, in);
    zmq_msg_close(&client);
    zmq_msg_close(&request);
}

void fake_take_subscription(struct fake_broker *broker)
{
    uint8_t bytes[256];
    int got = zmq_recv(broker->feed, bytes, sizeof(bytes), 0);
    if (got > 0)
        broker->subscribers += bytes[0] ? 1u : -1u;
}
