/*
 * engines.h - which addresses may be registered as engines over HTTP. Workers will call what is registered: without a
 * list, whoever may ask here could have them call anything that they can reach.
 */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H
#define SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H

#include <stdbool.h>

#include "common/base/fail.h"

/* rules: HOST, HOST:PORT, ADDRESS/BITS; ended by NULL. "loopback" stands for this machine's own. */
bool engines_allow(const char *const *rules, const char *url, struct fail *fail);
/* -EINVAL: it is no rule. */
int engines_rule_check(const char *rule, struct fail *fail);

#endif
