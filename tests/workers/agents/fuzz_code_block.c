/*
 * A model's reply: the command lies inside it, and is there exactly when a block was closed. The
 * same bytes as an engine's rendered template: the tail that is found lies inside them.
 */
#include "common/base/cleanup.h"
#include "tests/fuzz.h"
#include "workers/agents/formats/code_block.h"
#include "workers/engines/template/bridge.h"

static bool is_inside(struct slice part, const char *text, size_t len)
{
    const uint8_t *start = (const uint8_t *)text;
    return part.len <= len &&
           (part.len == 0 || (part.data >= start && part.data + part.len <= start + len));
}

static void learn_frame(struct slice text)
{
    static char eot[] = "<|e|>", bos[] = "<s>";
    const struct frame_special specials[] = {{2, eot}, {1, bos}};
    struct frame_tail tail;
    if (!frame_tail_find(text, &tail))
        return;
    must(is_inside(tail.before, (const char *)text.data, text.len) &&
         is_inside(tail.after, (const char *)text.data, text.len));
    struct frame frame = {0};
    struct fail fail = {0};
    AUTO_BUFFER said = {0};
    int error = frame_build(&frame, &tail, specials, 2, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    if (error == 0) {
        must(frame.parts.count <= FRAME_PARTS_MAX);
        const struct slice outs[] = {slice_from_str(" out "), slice_from_str("")};
        struct slice gap;
        must(!frame_gap_find(text, &tail, &gap)); /* there is but one turn */
        const size_t count = frame_build_gap(&frame, tail.before, specials, 2) ? 2 : 1;
        must(count == 1 || frame_runs(&frame, 2) == 2);
        for (size_t i = 0; i < frame_runs(&frame, count); i++)
            must(frame_text(&frame, outs, count, i, &said));
    }
    frame_finish(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *reply = malloc(size + 1);
    must(reply);
    if (size)
        memcpy(reply, data, size);
    reply[size] = '\0';
    size_t len = strlen(reply);
    struct code_block fence = code_block_read(reply);
    must(is_inside(fence.command, reply, len));
    must(fence.blocks <= len / 6 && (fence.blocks > 0 || fence.command.len == 0));
    must(fence.open_line <= len + 1);
    struct slice answer;
    code_block_submits(slice_of(reply, len), &answer);
    must(is_inside(answer, reply, len));
    learn_frame(slice_of(reply, size));
    return 0;
}
