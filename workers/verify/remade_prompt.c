#include "workers/verify/remade_prompt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/server/engine_state.h"

/* The line around a place. */
static struct slice line_at(struct slice text, size_t at)
{
    size_t from = at < text.len ? at : text.len, to = from;
    while (from > 0 && text.data[from - 1] != '\n')
        from--;
    while (to < text.len && text.data[to] != '\n')
        to++;
    return slice_of(text.data + from, to - from);
}

static bool has_year(struct slice line)
{
    for (size_t i = 0; i + 4 <= line.len; i++)
        if (line.data[i] == '2' && line.data[i + 1] == '0' && isdigit(line.data[i + 2]) && isdigit(line.data[i + 3]))
            return true;
    return false;
}

/* Some templates write the day: two texts of which one line differs, and says a year in both. */
static bool is_of_another_day(struct slice one, struct slice other)
{
    size_t at = 0;
    while (at < one.len && at < other.len && one.data[at] == other.data[at])
        at++;
    const struct slice a = line_at(one, at), b = line_at(other, at);
    const uint8_t *rest = a.data + a.len, *other_rest = b.data + b.len;
    return has_year(a) && has_year(b) &&
           slice_equal(slice_of(rest, one.len - (size_t)(rest - one.data)),
                       slice_of(other_rest, other.len - (size_t)(other_rest - other.data)));
}

static int compare_rendered(struct remade_turn *turn, const struct tokens *made, bool *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    *ret = remade_is_same(turn, made);
    int error = *ret || made->count == 0 ? 0 : remade_say(turn, fail);
    if (error < 0 || *ret || made->count == 0)
        return error;
    error = turn->engine->dialect->say(turn->engine, made, made->count, &text, fail);
    if (error == 0 && is_of_another_day(buffer_peek(&turn->said), buffer_peek(&text)))
        return remade_is_text(turn, ret, fail);
    return error;
}

/* Agents tell most answers as the user's, whatever the record calls them. */
static int check_rendered(struct remade_turn *turn, bool tools_are_users, bool *ret, struct fail *fail)
{
    AUTO_FREE struct task_message *messages = calloc(turn->end + 1, sizeof(*messages));
    struct tokens made = {0};
    struct fail why = {0};
    if (!messages)
        return fail_memory(fail);
    for (size_t i = 0; i < turn->end; i++) {
        const struct record_message *message = &turn->messages[i];
        const bool is_told = tools_are_users && i >= turn->own && strcmp(message->role, "tool") == 0;
        messages[i] = (struct task_message){is_told ? (char *)"user" : message->role, message->content};
    }
    int error = remade_unless_impossible(engine_render(turn->engine, messages, turn->end, turn->own, &made, &why));
    if (error < 0)
        fail_set(fail, error, "%s", why.text);
    else
        error = compare_rendered(turn, &made, ret, fail);
    tokens_finish(&made);
    return error;
}

int remade_prompt_check(struct remade_turn *turn, bool *ret, struct fail *fail)
{
    const bool is_first = turn->end == turn->own;
    if (turn->is_exact)
        return check_rendered(turn, false, ret, fail);
    int error = turn->end > 0 ? check_rendered(turn, true, ret, fail) : 0;
    if (error == 0 && !*ret && !is_first)
        error = check_rendered(turn, false, ret, fail);
    if (error == 0 && !*ret && (!is_first || turn->end == 0))
        error = remade_is_text(turn, ret, fail);
    return error;
}
