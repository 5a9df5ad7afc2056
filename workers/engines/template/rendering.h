/*
 * rendering.h - a conversation as the engine's chat template has it, in ids. Where messages that
 * must stay text name special tokens, the names are broken by a mark before the template sees
 * them; then the template's own special tokens are known by their place, the text is cut there,
 * and what was marked is encoded with special tokens off, without the marks. Awaits; tries once.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_RENDERING_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_RENDERING_H

#include "workers/engines/server/engine_state.h"

/* All of it as the template makes it, names of special tokens become such. */
int engine_render_once(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                       struct fail *fail);

/*
 * As engine_render, with a message that must stay text. -ENOTSUP: the template does something to
 * the messages that leaves no telling what is its own.
 */
int rendering_render(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                     struct tokens *ret, struct fail *fail);

#endif
