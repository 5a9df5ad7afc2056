/*
 * swe_scrub.h - the set-up command that leaves an agent no way to a repository's future, as the importer of rows has it
 * (client/python/sluice/importers/swe_history.py): one ref is left, at the base and what the image has changed of it.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_SWE_SCRUB_H
#define SLUICE_CLIENT_GATEWAY_PRORL_SWE_SCRUB_H

#include "common/base/buffer.h"

/* base: a commit, or "HEAD". */
void swe_scrub(const char *repository, const char *base, struct buffer *ret);

#endif
