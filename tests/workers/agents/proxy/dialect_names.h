/* dialect_names.h - all dialects, by name. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_NAMES_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_NAMES_H

static const char *const dialect_names[] = {"chat", "responses", "anthropic", "google"};
enum { DIALECT_NAMES = sizeof(dialect_names) / sizeof(*dialect_names) };

#endif
