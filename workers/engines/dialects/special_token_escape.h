/*
 * special_token_escape.h - text and ids by the routes that vLLM and SGLang share: POST /tokenize with a prompt
 * or with messages, POST /detokenize. Both always read special tokens' names as special tokens, so
 * plain text is made of them thus:
 *   - Whatever looks like the name of a special token ("<...>", "[...]") and is one
 *     token by itself is cut in two behind its first letters, by a special token of the template
 *     set between the halves: the separator. Special tokens are where every tokenizer cuts first, so
 *     that both halves are read as text, and the separator's ids are taken out again.
 *   - That this is what the tokenizer would make of the text in one piece is proven on made-up
 *     names when the engine is learnt. One that fails this has no separator, and such contents are
 *     refused (-ENOTSUP).
 * Everything here awaits and tries once.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_SPECIAL_TOKEN_ESCAPE_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_SPECIAL_TOKEN_ESCAPE_H

#include "workers/engines/server/engine_state.h"

/*
 * Sets plain_id, drops_blanks, the ends of a turn that the template writes, the separator, tokenizer_digest and,
 * where it is empty, template_digest (of what the template makes of a conversation). info->model is set before.
 */
int special_escape_learn(struct engine *engine, struct engine_info *info, struct fail *fail);

/*
 * For identify: appends what template and tokenizer make of a conversation, one request; nothing where they are not
 * offered. `model` is its name, or "".
 */
int special_escape_mark(struct engine *engine, const char *model, struct buffer *ret, struct fail *fail);

/* Of the engine's info; the slots of a dialect. */
int special_escape_render(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                          struct fail *fail);
int special_escape_apply_template(struct engine *engine, const struct task_message *messages, size_t count,
                                  struct buffer *ret, struct fail *fail);
int special_escape_tokenize(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                            struct fail *fail);
int special_escape_detokenize(struct engine *engine, uint32_t id, struct buffer *ret, struct fail *fail);

/* What all these ids say; specials by their names. */
int special_escape_say(struct engine *engine, const struct tokens *ids, size_t count, struct buffer *ret,
                       struct fail *fail);

/* The next thing in `text` from *from on that looks like a special token's name. Pure. */
bool special_escape_find_name(struct slice text, size_t *from, struct slice *ret);
/* Where in such a name it may be cut. Pure. */
size_t special_escape_cut(struct slice name);

#endif
