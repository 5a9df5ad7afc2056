/* turn_rendering.h - a conversation of sentinels, as a template has it:
 * what is learnt of it is read from such texts. */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_RENDERING_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_TURN_RENDERING_H

#include "workers/engines/server/engine_state.h"

/*
 * The template on `rounds` times a reply and a turn in that role, after a user's turn. The last
 * turn says `content`, the other words are sentinels. -ENOTSUP when it refuses them.
 */
int turn_template_render(struct engine *engine, enum tell_role role, size_t rounds, const char *reply,
                         const char *content, struct buffer *ret, struct fail *fail);

#endif
