#include "client/gateway/broker/refused_text.h"

#include <stdio.h>

struct refused_text refused_text(const struct msg_refused *refused)
{
    struct refused_text ret;
    snprintf(ret.reason, sizeof(ret.reason), "%.*s", SLICE_ARG(refused->reason));
    snprintf(ret.field, sizeof(ret.field), "%.*s", SLICE_ARG(refused->field));
    snprintf(ret.words, sizeof(ret.words), "%.*s", SLICE_ARG(refused->text));
    return ret;
}
