/* What SEND_LIST sends: rows of the ledger as the JSON of `rollouts`. */
#include "broker/io/batch.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "common/base/text.h"

enum { DETAIL_SHOWN = 200 }; /* bytes; all of it is in the trajectory */

struct listing {
    json_t *rollouts;
    uint64_t limit, matched;
};

static void add_text(json_t *object, const char *name, struct slice text)
{
    if (text.len)
        json_object_set_new(object, name, json_stringn((const char *)text.data, text.len));
}

static void add_number(json_t *object, const char *name, uint64_t number)
{
    json_object_set_new(object, name, json_integer((json_int_t)number));
}

static void list_row(void *arg, const struct msg_trajectory *row, struct slice image)
{
    struct listing *list = arg;
    if (++list->matched > list->limit)
        return;
    json_t *object = json_object();
    add_text(object, "rollout", row->rollout);
    add_text(object, "stream", row->stream);
    add_text(object, "task", row->task);
    add_number(object, "seq", row->seq);
    add_text(object, "outcome", row->outcome);
    json_object_set_new(object, "trainable", json_boolean(row->trainable));
    if (row->has_reward)
        json_object_set_new(object, "reward", json_real(row->reward));
    add_number(object, "attempt", row->attempt);
    add_text(object, "engine", row->engine);
    add_text(object, "image", image);
    add_number(object, "wait_ms", row->wait_ms);
    add_number(object, "init_ms", row->init_ms);
    add_number(object, "run_ms", row->run_ms);
    add_number(object, "eval_ms", row->eval_ms);
    add_number(object, "ended_ms", row->ended_ms);
    add_text(object, "detail", text_cut_slice(row->detail, DETAIL_SHOWN));
    json_array_append_new(list->rollouts, object);
}

int batch_list(struct ledger *ledger, const struct effect *effect, struct buffer *ret, struct fail *fail)
{
    struct listing list = {.rollouts = json_array(), .limit = effect->list.limit};
    struct refusal no;
    int code = ledger_list(ledger, effect->stream, &effect->list, list_row, &list, fail);
    json_t *answer = json_object();
    add_number(answer, "matched", list.matched);
    json_object_set_new(answer, "rollouts", list.rollouts);
    char *bytes = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    if (!bytes)
        return fail_set(fail, -ENOMEM, "out of memory");
    struct msg_rollouts rollouts = {.tag = effect->list.tag, .json = slice_from_str(bytes)};
    if (code == 0 && !message_encode(MSG_rollouts, &rollouts, ret, &no))
        code = fail_set(fail, -ENOMEM, "%s", no.text);
    free(bytes);
    return code;
}
