/*
 * model_dir.h - a model's directory, as Hugging Face has it, for engines that know ids alone: its tokenizer
 * (tokenizer.json), its chat template (chat_template.jinja, or that of tokenizer_config.json), what ends a turn
 * (generation_config.json, config.json) and how long a context may be. Read once, at start; then pure: no waiting.
 */
#ifndef SLUICE_WORKERS_ENGINES_MODELS_MODEL_DIR_H
#define SLUICE_WORKERS_ENGINES_MODELS_MODEL_DIR_H

#include <jansson.h>

#include "schemas/task/task.h"
#include "workers/engines/jinja/jinja.h"
#include "workers/tokenizer/tokenizer.h"

struct model_dir {
    char *url;        /* of the engine that it is for; NULL: of any */
    const char *path; /* borrowed */
    struct tokenizer *tokenizer;
    struct jinja *template;
    json_t *names;      /* that templates see beside messages: "bos_token" and the like */
    struct tokens ends; /* ids that end a turn; may be empty */
    uint64_t context;   /* tokens of prompt and reply together */
    char template_digest[80], tokenizer_digest[80], model_digest[80];
};

enum { MODEL_DIRS_MAX = 8 };
struct model_dirs {
    struct model_dir list[MODEL_DIRS_MAX];
    size_t count;
};

/* What an operator gave: "DIR", or "URL=DIR". context 0: what the directory says. -EINVAL with a sentence. */
int model_dirs_add(struct model_dirs *dirs, const char *given, uint64_t context, struct fail *fail);
void model_dirs_finish(struct model_dirs *dirs);
/* That of this engine, or else of any; NULL: none. */
const struct model_dir *model_dirs_find(const struct model_dirs *dirs, const char *url);

/* The chat template's text for these messages and the generation prompt. */
int model_dir_render(const struct model_dir *model, const struct task_message *messages, size_t count,
                     struct buffer *ret, struct fail *fail);
/* -EINVAL: a text that cannot be done exactly here, and there is nobody else to ask. */
int model_dir_encode(const struct model_dir *model, struct slice text, bool specials, struct tokens *ret,
                     struct fail *fail);
/* What the ids say. -EPROTO: the tokenizer has no such id. */
int model_dir_say(const struct model_dir *model, const struct tokens *ids, size_t count, struct buffer *ret,
                  struct fail *fail);

#endif
