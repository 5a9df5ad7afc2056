/*
 * trouble.h - why an image was not prepared: a refusal by name (refusals.def) when the image is to
 * blame, and a sentence; without a refusal it is this node's doing (a full disk, no memory).
 */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_TROUBLE_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_TROUBLE_H

#include <stdbool.h>

#include "common/base/fail.h"
#include "schemas/messages/message.h"

enum image_refusal {
    IMAGE_REFUSAL_NONE,
#define REFUSAL(name, wire, outcome, doc) IMAGE_REFUSAL_##name,
#include "workers/images/rootfs/refusals.def"
#undef REFUSAL
    IMAGE_REFUSAL_COUNT
};

struct image_trouble {
    enum image_refusal refusal;
    struct fail fail;
};

/* Both return the code, which image_refuse makes -EBADMSG. */
int image_refuse(struct image_trouble *trouble, enum image_refusal refusal, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int image_fail(struct image_trouble *trouble, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* As image_fail with errno and its words: "cannot WHAT PATH: ...". */
int image_fail_errno(struct image_trouble *trouble, const char *what, const char *path);

const char *image_refusal_wire(enum image_refusal refusal); /* "" for none */
const char *image_refusal_doc(enum image_refusal refusal);
/* What a job ends as. IMAGE_REFUSAL_NONE: infra. */
enum outcome image_refusal_outcome(enum image_refusal refusal);
/* False for a name that is no refusal's. */
bool image_refusal_parse(const char *wire, enum image_refusal *ret);

#endif
