#include "workers/images/rootfs/trouble.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *wire, *doc;
    enum outcome outcome;
} rows[IMAGE_REFUSAL_COUNT] = {
    [IMAGE_REFUSAL_NONE] = {"", "", OUTCOME_INFRA},
#define REFUSAL(name, wire, outcome, doc) [IMAGE_REFUSAL_##name] = {wire, doc, OUTCOME_##outcome},
#include "workers/images/rootfs/refusals.def"
#undef REFUSAL
};

static int say(struct image_trouble *trouble, enum image_refusal refusal, int code, const char *format, va_list args)
{
    if (!trouble)
        return code;
    trouble->refusal = refusal;
    trouble->fail.code = code;
    vsnprintf(trouble->fail.text, sizeof(trouble->fail.text), format, args);
    return code;
}

int image_refuse(struct image_trouble *trouble, enum image_refusal refusal, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = say(trouble, refusal, -EBADMSG, format, args);
    va_end(args);
    return code;
}

int image_fail(struct image_trouble *trouble, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(trouble, IMAGE_REFUSAL_NONE, code, format, args);
    va_end(args);
    return code;
}

int image_fail_errno(struct image_trouble *trouble, const char *what, const char *path)
{
    int error = errno;
    return image_fail(trouble, -error, "cannot %s %.200s: %s", what, path, strerror(error));
}

const char *image_refusal_wire(enum image_refusal refusal) { return rows[refusal].wire; }

const char *image_refusal_doc(enum image_refusal refusal) { return rows[refusal].doc; }

enum outcome image_refusal_outcome(enum image_refusal refusal) { return rows[refusal].outcome; }

bool image_refusal_parse(const char *wire, enum image_refusal *ret)
{
    for (int i = IMAGE_REFUSAL_NONE + 1; i < IMAGE_REFUSAL_COUNT; i++)
        if (strcmp(rows[i].wire, wire) == 0) {
            *ret = (enum image_refusal)i;
            return true;
        }
    return false;
}
