#include "workers/agents/ends.h"
#include "workers/agents/proxy/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/traces/labels.h"
#include "workers/agents/proxy/traces/saying.h"
#include "workers/agents/proxy/traces/traces.h"
#include "workers/engines/engine.h"

/* ---- the whole conversation anew ------------------------------------------------------------------ */

static int refuse_conversation(struct fail *fail)
{
    const struct fail why = *fail;
    return fail_set(fail, -EBADMSG, "the model's chat template refuses the conversation: %s",
                    engine_render_words(&why));
}

static int render_words(struct proxy *proxy, const struct words *words, struct tokens *ret, struct fail *fail)
{
    const int error = model_refuse_another(
        &proxy->model, engine_render(proxy->model.run->engine, words->messages, words->count, 0, ret, fail), fail);
    return error == -EINVAL ? refuse_conversation(fail) : error;
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

/* How many of the tree's roots there are; with `labels` those of them that agent.max_traces has. */
static size_t count_roots(const struct proxy *proxy, const enum label *labels)
{
    const bool has_all = !labels || labels_have(proxy->model.run->task->trained, LABEL_AUXILIARY);
    size_t count = 0;
    for (size_t i = 0; i < proxy->tree.count; i++)
        count += proxy->tree.nodes[i].parent == TREE_NONE && (has_all || labels[i] != LABEL_AUXILIARY);
    return count;
}

/* What is auxiliary is none of agent.max_traces unless it is learned from. NULL: out of memory. */
static enum label *label_with(struct tree *tree, const struct said_request *request)
{
    struct tree_node *node = tree_add(tree, TREE_NONE);
    if (!node)
        return NULL;
    node->messages = request->messages;
    node->count = request->count;
    node->tools = request->tools;
    node->tool_count = request->tool_count;
    enum label *labels = labels_of_roots(tree, true);
    tree->nodes[--tree->count] = (struct tree_node){0}; /* they are the request's */
    return labels;
}

static int check_room(struct proxy *proxy, const struct said_request *request, size_t tokens, const char *reason,
                      struct fail *fail)
{
    size_t count = count_roots(proxy, NULL);
    if (count >= proxy->model.run->task->max_traces) {
        AUTO_FREE enum label *labels = label_with(&proxy->tree, request);
        if (!labels)
            return fail_memory(fail);
        const bool is_aside = labels[proxy->tree.count] == LABEL_AUXILIARY;
        const bool is_learnt = labels_have(proxy->model.run->task->trained, LABEL_AUXILIARY);
        count = is_aside && !is_learnt ? 0 : count_roots(proxy, labels);
    }
    return model_check_room(&proxy->model, count, traces_tokens(&proxy->tree) + tokens, reason, fail);
}

/* That a turn behind the node and so many more tokens fits the context, and what a record holds, whichever traces it
 * makes. Before anything is added: what is refused may come again and again. */
static int check_fits(const struct proxy *proxy, size_t node, size_t added, struct fail *fail)
{
    const struct tree *tree = &proxy->tree;
    const uint64_t most = proxy->model.run->task->sampling.max_tokens, context = proxy->model.context_tokens;
    const size_t traces = traces_count(tree);
    size_t prompt = added;
    for (size_t at = node; at != TREE_NONE; at = tree->nodes[at].parent)
        prompt += tree->nodes[at].ids.count;
    const int error = model_check_fits(&proxy->model, prompt, fail);
    if (error < 0)
        return error;
    const size_t tokens = traces_tokens(tree) + prompt + (most < context ? most : context);
    if (traces >= RECORD_TRACES_MAX || tree->count + traces + 3 > RECORD_TURNS_MAX || tokens > RECORD_TOKENS_MAX)
        return fail_set(fail, -E2BIG, "the record is full: it holds %d traces, %d turns and %d tokens",
                        RECORD_TRACES_MAX, RECORD_TURNS_MAX, RECORD_TOKENS_MAX);
    return 0;
}

static const char another_conversation[] = "branch: the harness began another conversation";

/* Why the conversation has a root of its own; "": it is the first of all. */
static const char *root_reason(const struct proxy *proxy, const struct tree_match *match)
{
    if (proxy->tree.count == 0)
        return proxy->model.run->reason ? proxy->model.run->reason : "";
    if (match->is_rewrite)
        return "rewrite: the harness gives back a reply in other words than it was told";
    return match->has_history ? "history: the harness tells other words than before" : another_conversation;
}

/* Shows messages from `from` on. */
struct addition {
    size_t parent, from;
    const char *reason;
    const struct words *words; /* of a root: all of them as the template took them */
};

static int add_node(struct proxy *proxy, struct said_request *request, const struct addition *addition,
                    struct tokens *ids, size_t *ret, struct fail *fail)
{
    const int error = check_fits(proxy, addition->parent, ids->count, fail);
    if (error < 0)
        return error;
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
    const bool is_said = addition->words ? saying_add_words(&proxy->tree, *ret, addition->words, record)
                                         : saying_add_messages(node, record);
    return is_said ? 0 : agent_record_full(fail);
}

/* `reason` "" is of the first: while it was rendered another request may have come to be that. */
static int add_root(struct proxy *proxy, struct said_request *request, const struct toolbox *box, const char *reason,
                    size_t *ret, struct fail *fail)
{
    struct words words;
    struct tokens ids = {0};
    int error = words_make(request, &proxy->telling, box, &words) ? 0 : fail_memory(fail);
    if (error == 0)
        error = render_words(proxy, &words, &ids, fail);
    const bool is_first = proxy->tree.count == 0;
    const struct addition addition = {
        .parent = TREE_NONE, .reason = is_first || *reason ? reason : another_conversation, .words = &words};
    if (error == 0)
        error = check_room(proxy, request, ids.count, addition.reason, fail);
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
                              .count = told->count,
                              .trusts = proxy->model.trusts};
    AUTO_FREE const char **replies = list_replies(&proxy->tree, node, told->role, &telling.reply_count);
    if (!replies)
        return fail_memory(fail);
    telling.replies = replies;
    return model_refuse_another(&proxy->model, engine_bridge(proxy->model.run->engine, &telling, ret, fail), fail);
}

static int extend(struct proxy *proxy, struct said_request *request, const struct tree_match *match, size_t *ret,
                  struct fail *fail)
{
    const struct addition addition = {.parent = match->node, .from = match->taken, .reason = ""};
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
        return add_root(proxy, request, box, root_reason(proxy, &match), ret, fail);
    *ret = match.node;
    if (!proxy->tree.nodes[match.node].is_sampled)
        return check_fits(proxy, match.node, 0, fail);
    int error = extend(proxy, request, &match, ret, fail);
    if (error != -ENOTSUP)
        return error;
    const struct fail why = *fail;
    return add_root(proxy, request, box, why.text, ret, fail);
}
