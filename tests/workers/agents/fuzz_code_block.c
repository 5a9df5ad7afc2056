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
    return part.len <= len && (part.len == 0 || (part.data >= start && part.data + part.len <= start + len));
}

static void learn_frame(struct slice text)
{
    static char eot[] = "<|e|>", bos[] = "<s>";
    const struct turn_template_special specials[] = {{2, eot}, {1, bos}};
    struct turn_template_tail tail;
    if (!turn_template_tail_find(text, &tail))
        return;
    must(is_inside(tail.before, (const char *)text.data, text.len) &&
         is_inside(tail.after, (const char *)text.data, text.len));
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    AUTO_BUFFER said = {0};
    int error = turn_template_build(&turn_template, &tail, specials, 2, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    if (error == 0) {
        must(turn_template.parts.count <= TURN_TEMPLATE_PARTS_MAX);
        const struct slice outs[] = {slice_from_str(" out "), slice_from_str("")};
        struct slice gap;
        must(!turn_template_gap_find(text, &tail, &gap)); /* there is but one turn */
        const size_t count = turn_template_build_gap(&turn_template, tail.before, specials, 2) ? 2 : 1;
        must(count == 1 || turn_template_runs(&turn_template, 2) == 2);
        for (size_t i = 0; i < turn_template_runs(&turn_template, count); i++)
            must(turn_template_text(&turn_template, outs, count, i, &said));
    }
    turn_template_finish(&turn_template);
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
