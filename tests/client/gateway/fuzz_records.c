/*
 * A trajectory as it comes from the broker, with a record of a worker's and what a program printed in its sandbox: in
 * every API's form it is told as JSON, or is refused with words.
 */
#include "client/gateway/api/trajectory_json.h"
#include "client/gateway/gym/answer.h"
#include "client/gateway/polar/session_result.h"
#include "client/gateway/prorl/result.h"
#include "client/gateway/sandboxfusion/code_answer.h"
#include "common/base/cleanup.h"
#include "common/base/prng.h"
#include "common/base/utf8.h"
#include "schemas/messages/example.h"
#include "tests/fuzz.h"

enum { TOKENS = 32 };

/* ---- seeds ---------------------------------------------------------------------------------------------- */

static void add_turns(struct record *record, uint64_t *chance)
{
    static const uint32_t ids[TOKENS] = {7, 8, 9};
    static const float logprobs[TOKENS] = {-1};
    static const char *const roles[] = {"prompt", "assistant", "tool", "user"};
    for (uint64_t left = prng_next(chance) % 5; left > 0; left--) {
        struct record_turn turn = {.finish = "stop", .seconds = 1};
        snprintf(turn.role, sizeof(turn.role), "%s", roles[prng_next(chance) % 4]);
        const bool is_sampled = strcmp(turn.role, "assistant") == 0 && prng_next(chance) % 4;
        record_append(record, &turn, ids, is_sampled ? logprobs : NULL, prng_next(chance) % TOKENS, is_sampled);
    }
}

static void say(struct record *record, uint64_t *chance)
{
    static const struct {
        const char *role, *text, *tool;
    } said[] = {{"user", "What is 1+1?", NULL},
                {"assistant", "2", NULL},
                {"tool", "run 0 1200 aGVsbG8K -\nfile b3V0 AP8=\n", "bash: ls -l"},
                {"tool", "compile 1 5 - ZXJy\n", "edit: {\"a\":1}"},
                {"tool", "missing g++\nrun time 9 = ==\nrun\n", ""},
                {"note", "n", NULL}};
    for (uint64_t left = prng_next(chance) % 6; left > 0; left--) {
        const size_t i = prng_next(chance) % (sizeof(said) / sizeof(*said));
        record_say(record, said[i].role, slice_from_str(said[i].text), said[i].tool, -1);
    }
}

static bool make_seed(uint64_t chance, struct buffer *ret)
{
    static const char *const outcomes[] = {"ok", "agent", "task", "infra", "cancelled"};
    struct record record;
    AUTO_BUFFER bytes = {0};
    record_init(&record);
    for (uint64_t left = prng_next(&chance) % 4; left > 0; left--) {
        record_start_trace(&record, left > 1 ? "why" : "");
        add_turns(&record, &chance);
        say(&record, &chance);
    }
    bool is_made = record_encode(&record, &bytes, NULL);
    record_finish(&record);
    const struct msg_trajectory message = {
        .stream = slice_from_str("s"),
        .seq = 7,
        .rollout = slice_from_str("polar-0/3"),
        .group = slice_from_str("polar-0"),
        .task = slice_from_str("t"),
        .outcome = slice_from_str(outcomes[prng_next(&chance) % 5]),
        .trainable = prng_next(&chance) % 2,
        .reward = 0.5,
        .has_reward = prng_next(&chance) % 2,
        .metadata = slice_from_str(
            "{\"polar\":{\"task_id\":\"x\",\"metadata\":{\"a\":[1]}},\"tools\":[{\"name\":\"f\"}]}"),
        .has_metadata = true,
        .record = buffer_peek(&bytes),
        .has_record = bytes.len > 0};
    is_made = is_made && message_encode(MSG_trajectory, &message, ret, NULL);
    return is_made && !ret->failed;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    AUTO_BUFFER bytes = {0};
    if (seed % 4 == 0 && make_seed(seed, &bytes) && bytes.len + 1 <= max_size) {
        memcpy(data + 1, bytes.data, bytes.len);
        data[0] = (uint8_t)(seed / 4);
        size = bytes.len + 1;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

/* ---- what holds ------------------------------------------------------------------------------------------ */

static void check_json(struct buffer *text)
{
    json_t *read = json_loadb((const char *)text->data, text->len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    must(!text->failed && json_is_object(read));
    json_decref(read);
    buffer_clear(text);
}

/* Told, or refused with words. */
static void check_told(bool is_told, const struct refusal *no, struct buffer *text)
{
    if (is_told)
        check_json(text);
    else
        must(no->reason != REFUSAL_NONE && no->text[0] && utf8_is_valid(slice_from_str(no->text)));
    buffer_clear(text);
}

static void check_views(const struct msg_trajectory *message, const json_t *metadata, struct buffer *text)
{
    struct trajectory_view view = {0};
    struct refusal no = {0};
    if (trajectory_view_read(&view, message, &no)) {
        session_result_append(&view.out, json_object_get(metadata, "polar"), message->sample % 3, text);
        check_json(text);
        answer_append(&view.out, metadata, slice_of("", 0), text);
        check_json(text);
    }
    trajectory_view_finish(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum message_id id;
    struct msg_trajectory message;
    struct refusal no = {0};
    AUTO_BUFFER text = {0};
    const struct slice bytes = slice_of(data + 1, size ? size - 1 : 0);
    if (size == 0 || !message_peek(bytes, &id, &no) || id != MSG_trajectory ||
        !message_decode(id, bytes, &message, &no))
        return 0;
    json_t *metadata = json_loadb((const char *)message.metadata.data, message.metadata.len, JSON_REJECT_DUPLICATES,
                                  NULL);
    if (message.has_metadata && !json_is_object(metadata)) { /* the broker has seen to that */
        json_decref(metadata);
        return 0;
    }
    json_t *tools = json_pack("[s,s]", "bash", "submit");
    const struct result_plan plan = {
        .instance_id = json_object_get(metadata, "polar"), .tools = tools, .with_input_ids = data[0] & 1};
    check_told(result_write(&message, &plan, &text, &no), &no, &text);
    check_told(code_answer_write(&message, &text, &no), &no, &text);
    check_told(trajectory_json(&message, &text, &no), &no, &text);
    check_told(trajectory_summary(&message, &text, &no), &no, &text);
    check_views(&message, metadata, &text);
    json_decref(tools);
    json_decref(metadata);
    return 0;
}
