#include "workers/verify/remade_turn.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "workers/engines/server/engine_state.h"

int remade_unless_impossible(int error)
{
    return error == -ENOTSUP || error == -EINVAL || error == -E2BIG || error == -EPROTO ? 0 : error;
}

bool remade_is_same(struct remade_turn *turn, const struct tokens *made)
{
    size_t at = 0;
    const uint32_t *ids = turn->ids + turn->offset;
    while (at < turn->count && at < made->count && ids[at] == made->ids[at])
        at++;
    if (at == turn->count && at == made->count)
        return true;
    if (made->count > 0 && (!turn->is_off || at > turn->off_at)) {
        turn->is_off = true;
        turn->off_at = at;
        turn->off_wanted = at < made->count ? made->ids[at] : UINT32_MAX;
    }
    return false;
}

int remade_say(struct remade_turn *turn, struct fail *fail)
{
    if (turn->said.len > 0)
        return 0;
    const struct tokens ids = {.ids = (uint32_t *)(uintptr_t)turn->ids + turn->offset, .count = turn->count};
    return turn->engine->dialect->say(turn->engine, &ids, ids.count, &turn->said, fail);
}

bool remade_holds_messages(const struct remade_turn *turn, struct slice text)
{
    for (size_t i = turn->from; i < turn->end; i++) {
        struct slice content = slice_from_str(turn->messages[i].content);
        while (content.len > 0 && isspace(content.data[content.len - 1])) /* templates may */
            content.len--;
        while (content.len > 0 && isspace(*content.data))
            content = slice_of(content.data + 1, content.len - 1);
        const uint8_t *at = content.len ? memmem(text.data, text.len, content.data, content.len) : text.data;
        if (content.len > 0 && !at)
            return false;
        if (content.len > 0)
            text = slice_of(at + content.len, text.len - (size_t)(at + content.len - text.data));
    }
    return true;
}

int remade_is_text(struct remade_turn *turn, bool *ret, struct fail *fail)
{
    struct tokens made = {0};
    int error = remade_say(turn, fail);
    if (error < 0 || !remade_holds_messages(turn, buffer_peek(&turn->said)))
        return error;
    error = turn->engine->dialect->tokenize(turn->engine, buffer_peek(&turn->said), TOKENIZE_SPECIALS, &made, fail);
    *ret = error == 0 && remade_is_same(turn, &made);
    tokens_finish(&made);
    return remade_unless_impossible(error);
}
