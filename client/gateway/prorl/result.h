/* result.h - a trajectory as the result of ProRL's /process. */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_RESULT_H
#define SLUICE_CLIENT_GATEWAY_PRORL_RESULT_H

#include <jansson.h>

#include "client/lib/stream/trajectory_view.h"

struct result_plan {
    const json_t *instance_id, *trajectory_id; /* as they came; NULL: null */
    const json_t *tools;                       /* names */
    bool with_input_ids;
};

/* False with a refusal: the record cannot be read. */
bool result_write(const struct msg_trajectory *message, const struct result_plan *plan, struct buffer *ret,
                  struct refusal *no);

#endif
