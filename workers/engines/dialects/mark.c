#include "workers/engines/dialects/mark.h"

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/special_token_escape.h"

int mark_of_served(struct engine *engine, const char *more, struct engine_mark *ret, struct fail *fail)
{
    struct engine_info info = {0};
    char digest[80];
    AUTO_BUFFER text = {0};
    int error = http_api_model(engine, &info, digest, fail);
    if (error < 0)
        return error;
    buffer_printf(&text, "%s\n%llu\n%s\n", digest, (unsigned long long)info.context_tokens, more);
    error = special_escape_mark(engine, info.model, &text, fail);
    return error == 0 && !digest_of(buffer_peek(&text), ret->text) ? fail_memory(fail) : error;
}
