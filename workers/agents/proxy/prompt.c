#include "workers/agents/ends.h"
#include "workers/agents/proxy/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/conversation/prompt.h"
#include "workers/engines/engine.h"

/* ---- the whole conversation anew ------------------------------------------------------------------ */

static int render_words(struct proxy *proxy, const struct words *words, struct tokens *ret, struct fail *fail)
{
    return model_refuse_another(
        &proxy->model, engine_render(proxy->model.run->engine, words->messages, words->count, 0, ret, fail), fail);
}

int prompt_render(struct proxy *proxy, const struct said_request *request, const struct toolbox *box,
                  struct tokens *ret, struct fail *fail)
{
    struct words words;
    int error = words_make(request, &proxy->telling, box, &words) ? 0 : fail_memory(fail);
    if (error == 0)
        error = render_words(proxy, &words, ret, fail);
    words_finish(&words);
    return error;
}

static size_t count_roots(const struct tree *tree)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->count; i++)
        count += tree->nodes[i].parent == TREE_NONE;
    return count;
}

static const char another_conversation[] = "branch: the harness began another conversation";

/* Why the conversation has a root of its own; "": it is the first. */
static const char *root_reason(const struct tree *tree, const struct tree_match *match)
{
    if (tree->count == 0)
        return "";
    if (match->is_rewrite)
        return "rewrite: the harness gives back a reply in other words than it was told";
    return match->has_history ? "history: the harness tells other words than before" : another_conversation;
}

static bool say_new(struct record *record, const struct said *messages, size_t count)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    for (size_t i = 0; i < count; i++)
        if (!record_say(record, roles[messages[i].role], slice_from_str(messages[i].text), messages[i].name, 0))
            return false;
    return true;
}

/* Shows messages [from, count); the record has those before `said_from` already. */
struct addition {
    size_t parent, from, said_from;
    const char *reason;
    /* What the record is to say instead, as the template took them, so that the prompt can be made again from it
     * (sluice verify); NULL: the messages. */
    const struct words *words;
};

static int add_node(struct proxy *proxy, struct said_request *request, const struct addition *addition,
                    struct tokens *ids, size_t *ret, struct fail *fail)
{
    const size_t known = addition->said_from - addition->from;
    struct tree_node *node = tree_add(&proxy->tree, addition->parent);
    if (!node)
        return fail_memory(fail);
    *ret = proxy->tree.count - 1;
    node->reason = strdup(addition->reason);
    if (!node->reason || !tree_take_messages(node, request, addition->from))
        return tree_drop_last(&proxy->tree), fail_memory(fail);
    node->ids = *ids;
    *ids = (struct tokens){0};
    struct record *record = proxy->model.run->record;
    const bool is_said = addition->words
                             ? prompt_say_messages(record, addition->words->messages, addition->words->count)
                             : say_new(record, node->messages + known, node->count - known);
    return is_said ? 0 : agent_record_full(fail);
}

/* `reason` "" is of the first: while it was rendered another request may have come to be that. */
static int add_root(struct proxy *proxy, struct said_request *request, const struct toolbox *box, const char *reason,
                    size_t said_from, size_t *ret, struct fail *fail)
{
    struct words words;
    struct tokens ids = {0};
    int error = words_make(request, &proxy->telling, box, &words) ? 0 : fail_memory(fail);
    if (error == 0)
        error = render_words(proxy, &words, &ids, fail);
    const bool is_first = proxy->tree.count == 0;
    const struct addition addition = {.parent = TREE_NONE,
                                      .said_from = said_from,
                                      .reason = is_first || *reason ? reason : another_conversation,
                                      .words = is_first ? &words : NULL};
    if (error == 0)
        error = model_check_room(&proxy->model, count_roots(&proxy->tree), tree_record_tokens(&proxy->tree) + ids.count,
                                 addition.reason, fail);
    if (error == 0)
        error = add_node(proxy, request, &addition, &ids, ret, fail);
    words_finish(&words);
    tokens_finish(&ids);
    return error;
}

/* ---- behind what was sampled ---------------------------------------------------------------------- */

/*
 * The replies since one was last answered in this role, the last first: a template may change what it kept so far where
 * another role answers. Borrowed.
 */
static const char **list_replies(const struct tree *tree, size_t node, enum tell_role role, size_t *ret_count)
{
    const char **replies = calloc(tree->count, sizeof(*replies));
    size_t count = 0;
    for (size_t at = node; replies && at != TREE_NONE; at = tree->nodes[at].parent) {
        const struct tree_node *it = &tree->nodes[at];
        if (!it->is_sampled && it->parent != TREE_NONE && it->role == role)
            break;
        if (it->is_sampled)
            replies[count++] = it->text;
    }
    *ret_count = count;
    return replies;
}

static int make_bridge(struct proxy *proxy, size_t node, const struct told *told, struct tokens *ret, struct fail *fail)
{
    const struct tree_node *reply = &proxy->tree.nodes[node];
    if (strcmp(reply->turn.finish, "length") == 0)
        return fail_set(fail, -ENOTSUP, "cut: the reply before ended by its length");
    struct telling telling = {.role = told->role,
                              .last = reply->ids.ids[reply->ids.count - 1],
                              .contents = told->contents,
                              .count = told->count};
    AUTO_FREE const char **replies = list_replies(&proxy->tree, node, told->role, &telling.reply_count);
    if (!replies)
        return fail_memory(fail);
    telling.replies = replies;
    return model_refuse_another(&proxy->model, engine_bridge(proxy->model.run->engine, &telling, ret, fail), fail);
}

static int extend(struct proxy *proxy, struct said_request *request, const struct tree_match *match, size_t *ret,
                  struct fail *fail)
{
    const struct addition addition = {
        .parent = match->node, .from = match->taken, .said_from = match->taken, .reason = ""};
    struct told told;
    struct tokens ids = {0};
    const struct said *added = request->messages + match->taken;
    int error = told_make(added, request->count - match->taken, &proxy->telling, &told) ? 0 : fail_memory(fail);
    const enum tell_role role = told.role;
    if (error == 0)
        error = make_bridge(proxy, match->node, &told, &ids, fail);
    if (error == 0)
        error = add_node(proxy, request, &addition, &ids, ret, fail);
    if (error == 0)
        proxy->tree.nodes[*ret].role = role;
    told_finish(&told);
    tokens_finish(&ids);
    return error;
}

int prompt_find(struct proxy *proxy, struct said_request *request, const struct toolbox *box, size_t *ret,
                struct fail *fail)
{
    struct tree_match match;
    tree_match(&proxy->tree, request, &match);
    if (match.node == TREE_NONE)
        return add_root(proxy, request, box, root_reason(&proxy->tree, &match), 0, ret, fail);
    *ret = match.node;
    if (!proxy->tree.nodes[match.node].is_sampled)
        return 0;
    int error = extend(proxy, request, &match, ret, fail);
    if (error != -ENOTSUP)
        return error;
    const struct fail why = *fail;
    return add_root(proxy, request, box, why.text, match.taken, ret, fail);
}
