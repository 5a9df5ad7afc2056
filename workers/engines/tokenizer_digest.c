#include "workers/engines/tokenizer_digest.h"

#include <errno.h>

#include "common/digest.h"
#include "schemas/tokenizer_sample.h"

int tokenizer_digest_learn(struct engine *engine, const struct dialect *dialect, char ret[80],
                           struct fail *fail)
{
    struct tokens ids = {0};
    ret[0] = '\0';
    int error = dialect->tokenize ? dialect->tokenize(engine, slice_from_str(tokenizer_sample),
                                                      TOKENIZE_PLAIN, &ids, fail)
                                  : -ENOTSUP;
    if (error == -ENOTSUP || error == -EINVAL)
        error = 0;
    else if (error == 0 && !digest_of(slice_of(ids.ids, ids.count * sizeof(*ids.ids)), ret))
        error = fail_set(fail, -ENOMEM, "out of memory");
    tokens_finish(&ids);
    return error;
}
