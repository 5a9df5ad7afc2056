/*
 * tasks_file.h - a file of tasks, one JSON object a line, or of one task alone that is written over several lines; read
 * and checked as a whole before anything is sent. Blank lines are passed over, and a byte order mark in front.
 */
#ifndef SLUICE_CLIENT_CLI_SUBMIT_TASKS_FILE_H
#define SLUICE_CLIENT_CLI_SUBMIT_TASKS_FILE_H

#include <stdio.h>

#include "client/cli/programs/python.h"
#include "client/sluice.h"

enum { TASK_LINE_BYTES_MAX = 1 << 20, GROUP_NAME_SIZE = 97 };

struct task_line {
    char *json, *id;
    size_t line; /* from 1 */
    unsigned samples;
    char name[GROUP_NAME_SIZE]; /* of its group; set by tasks_name_groups */
};

struct tasks_file {
    const char *path;
    struct task_line *lines;
    size_t count, capacity;
    size_t bad; /* lines that are no task, each of them said on stderr */
};

/* path "-" is stdin. samples 0: each task's own. False, with a sentence said, if unreadable. */
bool tasks_read(struct tasks_file *tasks, const char *path, unsigned samples);
/* Whether it is a directory, or the dataset.toml of one. */
bool tasks_are_folders(const char *path);
/* Those that an importer makes of folders; `importer` has its options. Otherwise as tasks_read. */
bool tasks_import(struct tasks_file *tasks, const char *path, struct python_call *importer, unsigned samples);
/*
 * <prefix>-<task id>-<hash of stream, samples and content>: submitting the same file again gives
 * the same names. A line that stands there twice gets two names. prefix NULL: the file's stem.
 */
bool tasks_name_groups(struct tasks_file *tasks, const char *prefix, const char *stream);
/*
 * Each task's limits.versions_behind and, unless NULL, limits.on_stale become these, whatever it says. What makes a
 * line no task is said, and counted in `bad`. False when out of memory.
 */
bool tasks_set_age(struct tasks_file *tasks, uint64_t versions_behind, const char *on_stale);
/* Each task's agent becomes this one, without any settings of the agent that it had; otherwise as tasks_set_age. */
bool tasks_set_agent(struct tasks_file *tasks, const char *kind);
/* "group", "stream", "task", "line" and "samples" of a JSON object. */
void tasks_line_json(FILE *out, const struct task_line *line, const char *stream);
void tasks_finish(struct tasks_file *tasks);

#endif
