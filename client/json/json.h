/*
 * json.h - trajectories and other answers as JSON, written as they are read: no tree is built.
 * One object is one line (JSONL). Numbers keep their value: 9 digits for a float, 17 for a double.
 */
#ifndef SLUICE_CLIENT_JSON_JSON_H
#define SLUICE_CLIENT_JSON_JSON_H

#include <stdio.h>

#include "client/sluice.h"

/* A string. What would steer a terminal is escaped, and so means the same. */
void json_text(FILE *out, const char *text);
/* JSON that somebody else wrote, on one line; escaped as by json_text. */
void json_line(FILE *out, const char *json);
/* A double as the shortest of 15 and 17 digits that reads back the same. */
void json_number(FILE *out, double number);
/* , "outcome": ..., "reward": ..., its parts, metrics and tests: members of an object that has begun. */
void json_verdict(FILE *out, const struct sluice_trajectory *trajectory);
/* {"stream": ..., "traces": [{"token_ids": [...], ...}], ...} and a newline. */
void json_trajectory(FILE *out, const struct sluice_trajectory *trajectory);

#endif
