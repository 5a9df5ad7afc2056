/* languages.h - the languages of languages.def. */
#ifndef SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_LANGUAGES_H
#define SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_LANGUAGES_H

#include "common/base/buffer.h"

struct language {
    const char *name, *file, *program;
    const char *compile; /* NULL: it is run as it is */
    const char *run;
};

/* NULL: there is none of that name. */
const struct language *language_find(const char *name);
/* "'python', 'cpp' or ..." */
void languages_list(struct buffer *ret);

#endif
