#include "workers/agents/proxy/traces/saying.h"

#include <string.h>

/* ---- what two conversations begin with -------------------------------------------------------- */

static bool is_same(const struct record_message *said, const struct task_message *message)
{
    return !said->tool && strcmp(said->role, message->role) == 0 && strcmp(said->content, message->content) == 0;
}

/* How many of the words the stretches begin with. */
static size_t count_alike(const struct record_stretches *said, const struct words *words, const struct record *record)
{
    size_t alike = 0;
    for (size_t i = 0; i < said->count; i++)
        for (size_t k = 0; k < said->runs[i].length; k++, alike++)
            if (alike == words->count || !is_same(&record->messages[said->runs[i].offset + k], &words->messages[alike]))
                return alike;
    return alike;
}

/* The earlier root that has most of them. */
static size_t find_alike(const struct tree *tree, size_t root, const struct words *words, const struct record *record,
                         size_t *ret_alike)
{
    size_t found = TREE_NONE;
    *ret_alike = 0;
    for (size_t i = 0; i < root; i++) {
        const struct tree_node *node = &tree->nodes[i];
        const size_t alike = node->parent == TREE_NONE ? count_alike(&node->said, words, record) : 0;
        if (alike > *ret_alike) {
            *ret_alike = alike;
            found = i;
        }
    }
    return found;
}

/* The first `count` messages of the stretches. */
static bool add_first(struct record_stretches *to, const struct record_stretches *from, size_t count)
{
    bool done = true;
    for (size_t i = 0; count > 0 && done; i++) {
        const size_t length = from->runs[i].length < count ? from->runs[i].length : count;
        done = record_stretches_add(to, from->runs[i].offset, length);
        count -= length;
    }
    return done;
}

/* ---- saying --------------------------------------------------------------------------------------- */

/* Those of the record from `from` on are the node's. */
static bool take(struct tree_node *node, const struct record *record, size_t from)
{
    return record_stretches_add(&node->said, from, record->message_count - from);
}

bool saying_add_words(struct tree *tree, size_t root, const struct words *words, struct record *record)
{
    struct tree_node *node = &tree->nodes[root];
    const size_t from = record->message_count;
    size_t alike;
    const size_t other = find_alike(tree, root, words, record, &alike);
    bool done = alike == 0 || add_first(&node->said, &tree->nodes[other].said, alike);
    for (size_t i = alike; i < words->count && done; i++)
        done = record_say(record, words->messages[i].role, slice_from_str(words->messages[i].content), NULL, 0);
    return done && take(node, record, from);
}

bool saying_add_messages(struct tree_node *node, struct record *record)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    const size_t from = record->message_count;
    bool done = true;
    for (size_t i = 0; i < node->count && done; i++) {
        const struct said *said = &node->messages[i];
        done = record_say(record, roles[said->role], slice_from_str(said->text), said->name, 0);
    }
    return done && take(node, record, from);
}

bool saying_add_reply(struct tree_node *node, struct record *record)
{
    const size_t from = record->message_count;
    return record_say_sampled(record, slice_from_str(node->text)) && take(node, record, from);
}
