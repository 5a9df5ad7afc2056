/*
 * http_api.h - what several dialects ask and are answered alike: requests about text, ids and what is
 * served, and the call that samples. GET /v1/models names the models a server has: vLLM, SGLang and
 * every server of OpenAI's protocol answer it, the first two with the context's size. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_HTTP_API_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_HTTP_API_H

#include <jansson.h>

#include "workers/engines/dialects/call.h"
#include "workers/engines/server/engine_state.h"

/* A GET's answer. -ENOTSUP: no such route, or no JSON there. */
int http_api_get(struct engine *engine, const char *path, json_t **ret, struct fail *fail);
/* A POST's answer. body NULL: there was no memory for it. */
int http_api_post(struct engine *engine, const char *path, json_t *body, json_t **ret, struct fail *fail);
/* A list of roles and contents. -EINVAL: not UTF-8. */
int http_api_messages(const struct task_message *messages, size_t count, json_t **ret, struct fail *fail);
/* The ids under "tokens" of an answer. -EPROTO. */
int http_api_ids(const json_t *answer, struct tokens *ret, struct fail *fail);

/* "name":"...",, where there is a text. */
void http_api_write_text(const char *name, const char *text, struct buffer *body);
/*
 * What the first `count` ids say, appended: asked of /detokenize by their list in a body that has begun ("" or members
 * with a comma each), answered as the first of these members, up to a NULL, that the answer has. -EPROTO.
 */
int http_api_say(struct engine *engine, const struct tokens *ids, size_t count, const char *members,
                 const char *const *names, struct buffer *ret, struct fail *fail);

/* A call that samples, and how much may come back. */
struct http_api_call {
    const char *path, *text; /* the request; NULL: there was no memory for it */
    uint64_t tokens;         /* that are sampled or told of, at most */
    size_t token_bytes;      /* of the answer, for each of them */
    size_t prompt_bytes;     /* of the answer, for the prompt */
};
int http_api_sample(struct engine *engine, const struct http_api_call *call, struct call_answer *ret,
                    struct fail *fail);
/* The same, with an answer that is heard as it comes. */
int http_api_hear(struct engine *engine, const struct http_api_call *call, const struct http_hearer *hearer,
                  struct fail *fail);

/*
 * info->model and context_tokens (0: it does not say); and, unless NULL, the digest (80 bytes) of
 * what the route says of the model but for the weights in it. -ENOTSUP: no such route.
 */
int http_api_model(struct engine *engine, struct engine_info *info, char *ret_digest, struct fail *fail);
/* The digest of these members of an object. */
int digest_members(const json_t *object, const char *const *names, size_t count, char ret[80], struct fail *fail);
/*
 * What an engine's tokenizer is known by, of what came of asking for the ids of schemas/tokenizer_sample.h:
 * 0 and the ids, or an error. `ret` is "" where it cannot be asked, or the
 * engine does not take the text: not knowing is no fault. Other errors are returned.
 */
int tokenizer_digest_take(int error, const struct tokens *ids, char ret[80], struct fail *fail);

#endif
