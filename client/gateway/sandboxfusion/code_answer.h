/* code_answer.h - a trajectory of code_task.h's as the answer of /run_code. */
#ifndef SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_CODE_ANSWER_H
#define SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_CODE_ANSWER_H

#include "client/lib/stream/trajectory_view.h"

/* False with a refusal: the record cannot be read. */
bool code_answer_write(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no);
/* Nothing was run: a SandboxError with this sentence. */
void code_answer_write_trouble(const char *words, struct buffer *ret);

#endif
