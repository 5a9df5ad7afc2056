/*
 * core/engines/policies.h - policies by name.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_POLICIES_H
#define SLUICE_BROKER_CORE_ENGINES_POLICIES_H

#include "broker/core/engines/engines.h"

bool policies_have_room(const struct core *core);
/* NULL when out of memory. What nobody is of is forgotten: policy_forget_unused. */
struct policy *policy_intern(struct core *core, struct slice name);
void policy_forget_unused(struct core *core, struct policy *policy);
void engine_set_policy(struct core *core, struct engine *engine, struct policy *policy);
void policy_add_group(struct policy *policy, struct group_work *work);
/* Its evaluations need engines of this policy; nothing of them binds it. */
void policy_add_judged(struct policy *policy, struct group_work *work);
void policy_take_group(struct core *core, struct group_work *work);
/* After a restart: whether it is bound. */
void policy_restore_group(struct group_work *work);
void policies_restored(struct core *core);
/* A worker says what the engine serves. */
void engine_identify(struct core *core, struct engine *engine, struct slice tokenizer, struct slice template);
/* Whether it serves what its policy does is found out anew. */
void engine_judge(struct core *core, struct engine *engine);
/* Whether this good run may be recorded in its group: it was sampled under the policy's identity. */
bool policy_admits(struct core *core, struct job *job, const struct msg_job_result *in);
/* For core_check: NULL, or what is broken. */
const char *policies_check(const struct core *core);

#endif
