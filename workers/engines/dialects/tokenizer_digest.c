#include "workers/engines/dialects/tokenizer_digest.h"

#include <errno.h>

#include "common/digest/digest.h"

int tokenizer_digest_take(int error, const struct tokens *ids, char ret[80], struct fail *fail)
{
    ret[0] = '\0';
    if (error == -ENOTSUP || error == -EINVAL)
        return 0;
    if (error == 0 && !digest_of(slice_of(ids->ids, ids->count * sizeof(*ids->ids)), ret))
        error = fail_set(fail, -ENOMEM, "out of memory");
    return error;
}
