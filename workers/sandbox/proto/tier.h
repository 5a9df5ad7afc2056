/*
 * tier.h - the ways of making a sandbox (tiers.def) and what each needs of the machine
 * (checks.def). The words are the command line's, the doctor's and docs/sandbox.md's.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_TIER_H
#define SLUICE_WORKERS_SANDBOX_PROTO_TIER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum probe_check {
#define CHECK(name, title, namespaces, after, limit_ms, use) CHECK_##name,
#include "workers/sandbox/proto/checks.def"
#undef CHECK
    CHECK_COUNT,
    CHECK_NONE = CHECK_COUNT
};

enum tier {
#define TIER(name, word, needs, what, holds, lacks, warning) TIER_##name,
#include "workers/sandbox/proto/tiers.def"
#undef TIER
    TIER_COUNT,
    TIER_NONE = TIER_COUNT
};

const char *tier_word(enum tier tier); /* "overlay-tmpfs"; "none" */
bool tier_parse(const char *word, enum tier *ret);
uint32_t tier_needs(enum tier tier); /* bits 1 << enum probe_check */

bool tier_has_namespaces(enum tier tier); /* its spawner and sandboxes have namespaces that we made */
bool tier_has_root(enum tier tier);       /* its sandboxes have a root, and a pid 1, of their own */
bool tier_is_on_disk(enum tier tier);     /* what they write lies on a disk that others write to */
const char *tier_warning(enum tier tier); /* or "" */

/* One line each for --help; a Markdown table for docs/sandbox.md. */
void tier_print_help(FILE *out);
void tier_print_markdown(FILE *out);

#endif
