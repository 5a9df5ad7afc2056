#include "workers/layers/unpack/unpack.h"

#include <errno.h>

int layer_refuse(struct unpack *unpack, const char *path, const char *why)
{
    return fail_set(unpack->fail, -EBADMSG, "the layer holds %.200s: %s", path, why);
}

int layer_refuse_archive(struct unpack *unpack)
{
    if (unpack->tar_fail.code < 0)
        return fail_set(unpack->fail, unpack->tar_fail.code, "%s", unpack->tar_fail.text);
    const char *why = archive_error_string(unpack->archive);
    return fail_set(unpack->fail, -EBADMSG, "the layer is damaged: tar: %.200s", why ? why : "?");
}
