/* sources.h - which kind of task a data_source stands for (sources.def). */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_SOURCES_H
#define SLUICE_CLIENT_GATEWAY_PRORL_SOURCES_H

enum source_kind {
    SOURCE_HANDLER, /* none of these: an evaluator of that name */
    SOURCE_MATH,
    SOURCE_STEM,
    SOURCE_CODE,
    SOURCE_SWE
};

/* Of ProRL's own default, where the instance has none. */
#define SOURCE_DEFAULT "swebench"

enum source_kind source_kind_of(const char *source);

#endif
