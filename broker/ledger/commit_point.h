/*
 * commit_point.h - a commit, and where it ends in the write-ahead log: after so many frames of the log that has these
 * salts.
 */
#ifndef SLUICE_BROKER_LEDGER_COMMIT_POINT_H
#define SLUICE_BROKER_LEDGER_COMMIT_POINT_H

#include <stdint.h>

struct commit_point {
    uint64_t number; /* from 1 */
    uint32_t salts[2], frames;
};

#endif
