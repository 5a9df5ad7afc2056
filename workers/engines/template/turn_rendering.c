#include "workers/engines/template/turn_rendering.h"

#include <errno.h>

#include "workers/engines/template/bridge.h"

enum { ROUNDS_MAX = 2, MESSAGES_MAX = 2 * ROUNDS_MAX + 1 };

/* A user's turn, then `rounds` times a reply and a turn in that role, the last with `content`. */
static size_t make_rounds(enum tell_role role, size_t rounds, const char *reply, const char *content,
                          struct task_message messages[MESSAGES_MAX])
{
    size_t count = 0;
    messages[count++] = (struct task_message){(char *)"user", (char *)TURN_TEMPLATE_USER};
    for (size_t i = 0; i < rounds; i++) {
        messages[count++] = (struct task_message){(char *)"assistant", (char *)reply};
        messages[count++] = (struct task_message){(char *)tell_role_word(role), (char *)TURN_TEMPLATE_USER};
    }
    messages[count - 1].content = (char *)content;
    return count;
}

int turn_template_render(struct engine *engine, enum tell_role role, size_t rounds, const char *reply,
                         const char *content, struct buffer *ret, struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    const size_t count = make_rounds(role, rounds, reply, content, messages);
    int error = engine->dialect->apply_template(engine, messages, count, ret, fail);
    return error == -EINVAL
               ? fail_set(fail, -ENOTSUP, "template: it takes no turns of the role %s", tell_role_word(role))
               : error;
}
