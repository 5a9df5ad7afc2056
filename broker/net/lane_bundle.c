#include "broker/net/lane_bundle.h"

#include "broker/net/zmq_frame.h"

void lane_bundle_finish(struct lane_bundle *bundle)
{
    buffer_finish(&bundle->bytes);
    *bundle = (struct lane_bundle){0};
}

/* By its bytes, so that nobody has to remember which it was. */
static bool has_task(const struct lane_bundle *bundle, struct slice task)
{
    return task.len == 0 || (bundle->task_len > 0 &&
                             slice_equal(slice_of(bundle->bytes.data + bundle->task_at, bundle->task_len), task));
}

bool lane_bundle_takes(const struct lane_bundle *bundle, struct slice task, struct slice message)
{
    const size_t more = message.len + (has_task(bundle, task) ? 0 : task.len);
    return bundle->bytes.len == 0 || bundle->bytes.len - bundle->task_first + more <= BUNDLE_BYTES_MAX;
}

static bool add_task(struct lane_bundle *bundle, struct slice task)
{
    const bool is_first = bundle->bytes.len == 0;
    if (!bundle_add(&bundle->bytes, task))
        return false;
    bundle->task_at = bundle->bytes.len - task.len;
    bundle->task_len = task.len;
    bundle->task_first = is_first ? task.len : bundle->task_first;
    return true;
}

bool lane_bundle_add(struct lane_bundle *bundle, struct slice task, struct slice message)
{
    struct lane_bundle before = *bundle;
    if ((has_task(bundle, task) || add_task(bundle, task)) && bundle_add(&bundle->bytes, message))
        return true;
    before.bytes.data = bundle->bytes.data; /* it may have grown */
    before.bytes.capacity = bundle->bytes.capacity;
    *bundle = before;
    return false;
}

/* A large one is handed over; others are copied, as the room that they lie in is for the next. */
bool lane_bundle_take(struct lane_bundle *bundle, zmq_msg_t *ret)
{
    const struct slice bytes = bundle_peek(&bundle->bytes);
    const bool is_handed_over = bytes.len > BUNDLE_BYTES_MAX && bytes.data == bundle->bytes.data;
    const bool has_memory = is_handed_over ? zmq_frame_init(ret, &bundle->bytes, NULL)
                                           : zmq_frame_init_copy(ret, bytes);
    buffer_clear(&bundle->bytes);
    bundle->task_at = bundle->task_len = bundle->task_first = 0;
    return has_memory;
}
