#include "workers/verify/remade_bridge.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/words.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

static int bridge(struct remade_turn *turn, enum tell_role role, const struct slice *contents, size_t count,
                  struct tokens *ret, struct fail *fail)
{
    struct fail why = {0};
    const struct telling telling = {
        .role = role, .last = turn->ids[turn->offset - 1], .contents = contents, .count = count};
    int error = remade_unless_impossible(engine_bridge(turn->engine, &telling, ret, &why));
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

static int is_bridge_of(struct remade_turn *turn, enum tell_role role, const struct slice *contents, size_t count,
                        bool *ret, struct fail *fail)
{
    struct tokens made = {0};
    int error = bridge(turn, role, contents, count, &made, fail);
    *ret = error == 0 && remade_is_same(turn, &made);
    tokens_finish(&made);
    return error;
}

/* The content within what the ids say, by what stands around a made-up one; NULL data: it is not there. */
static int find_content(struct remade_turn *turn, enum tell_role role, struct slice *ret, struct fail *fail)
{
    static const char mark[] = TURN_TEMPLATE_USER;
    AUTO_BUFFER text = {0};
    struct tokens made = {0};
    *ret = (struct slice){0};
    const struct slice marked = slice_from_str(mark);
    int error = bridge(turn, role, &marked, 1, &made, fail);
    if (error == 0 && made.count > 0)
        error = turn->engine->dialect->say(turn->engine, &made, made.count, &text, fail);
    tokens_finish(&made);
    const uint8_t *at = text.len ? memmem(text.data, text.len, mark, sizeof(mark) - 1) : NULL;
    if (error < 0 || !at)
        return error;
    const size_t before = (size_t)(at - text.data), after = text.len - before - (sizeof(mark) - 1);
    const struct slice said = buffer_peek(&turn->said);
    if (said.len >= before + after && memcmp(said.data, text.data, before) == 0 &&
        memcmp(said.data + said.len - after, at + sizeof(mark) - 1, after) == 0)
        *ret = slice_of(said.data + before, said.len - before - after);
    return 0;
}

static int is_bridge(struct remade_turn *turn, enum tell_role role, bool *ret, struct fail *fail)
{
    struct slice content;
    int error = 0;
    if (turn->end - turn->from == 1) {
        content = slice_from_str(turn->messages[turn->from].content);
        error = is_bridge_of(turn, role, &content, 1, ret, fail);
    }
    if (error < 0 || *ret)
        return error;
    error = remade_say(turn, fail); /* an agent may put words of its own around what it records */
    if (error == 0)
        error = find_content(turn, role, &content, fail);
    if (error < 0 || !content.data || !remade_holds_messages(turn, content))
        return error;
    return is_bridge_of(turn, role, &content, 1, ret, fail);
}

/* As a harness's model was told it: in some form, whose words or the template's are around results. */
static int is_told(struct remade_turn *turn, const struct tool_telling *telling, const struct said *messages, bool *ret,
                   struct fail *fail)
{
    struct told told;
    int error = told_make(messages, turn->end - turn->from, telling, &told) ? 0 : fail_memory(fail);
    if (error == 0)
        error = is_bridge_of(turn, told.role, told.contents, told.count, ret, fail);
    told_finish(&told);
    return error;
}

static int check_told(struct remade_turn *turn, bool *ret, struct fail *fail)
{
    const size_t count = turn->end - turn->from;
    AUTO_FREE struct said *messages = calloc(count + 1, sizeof(*messages));
    const struct tool_format *format;
    int error = messages ? 0 : fail_memory(fail);
    for (size_t i = 0; i < count && messages; i++) {
        const struct record_message *message = &turn->messages[turn->from + i];
        const bool is_tool = strcmp(message->role, "tool") == 0;
        messages[i] = (struct said){
            .role = is_tool ? SAID_TOOL : SAID_USER, .text = message->content, .name = message->tool};
    }
    for (size_t i = 0; error == 0 && count > 0 && !*ret && (format = tool_format_at(i / 2)); i++) {
        const struct tool_telling telling = {.format = format, .is_framed = i % 2 == 0};
        error = is_told(turn, &telling, messages, ret, fail);
    }
    return error;
}

int remade_bridge_check(struct remade_turn *turn, bool *ret, struct fail *fail)
{
    if (turn->is_exact)
        return check_told(turn, ret, fail);
    int error = is_bridge(turn, TELL_USER, ret, fail);
    if (error == 0 && !*ret)
        error = is_bridge(turn, TELL_TOOL, ret, fail);
    if (error == 0 && !*ret && turn->end - turn->from != 1)
        error = remade_is_text(turn, ret, fail);
    return error;
}
