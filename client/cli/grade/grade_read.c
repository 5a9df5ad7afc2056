#include "client/cli/grade/grade_read.h"

#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/grade/grade_rows.h"
#include "client/cli/grade/own_directory.h"
#include "common/base/nearest.h"

static void refuse_id(const struct grade_jobs *jobs, const char *id)
{
    struct nearest nearest = {.wanted = slice_from_str(id)};
    char hint[NEAREST_TEXT_SIZE];
    for (size_t i = 0; i < jobs->tasks.count; i++)
        nearest_offer_str(&nearest, jobs->tasks.lines[i].id);
    cli_say("--id %s: there is no such task in %s%s", id, jobs->tasks.path, nearest_text(&nearest, "", hint));
}

static struct grade_left left_of(const struct grade_options *options)
{
    struct grade_left left = {.source = options->solution  ? GRADE_SOLUTION
                                        : options->nothing ? GRADE_NOTHING
                                                           : GRADE_GIVEN,
                              .file_count = options->files.count};
    memcpy(left.files, options->files.items, sizeof(left.files));
    if (options->text)
        left.text = slice_from_str(options->text);
    return left;
}

static bool add_line(struct grade_jobs *jobs, const struct task_line *line)
{
    const struct grade_left left = left_of(jobs->options);
    struct fail fail = {0};
    struct grade_job *job = grade_jobs_add(jobs);
    if (!job || grade_jobs_make(jobs, job, line, &left, &fail) < 0) {
        cli_say("%s:%zu: %s: %s", jobs->tasks.path, line->line, line->id, job ? fail.text : "out of memory");
        return false;
    }
    return true;
}

static bool choose(struct grade_jobs *jobs)
{
    const struct grade_options *options = jobs->options;
    const size_t count = options->ids.count ? options->ids.count : jobs->tasks.count;
    bool good = true;
    if (count > 1 && !options->solution && !options->nothing) {
        cli_say("%s has %zu tasks: --id says whose files or words these are, --rows gives each its own", options->task,
                jobs->tasks.count);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *id = options->ids.count ? options->ids.items[i] : NULL;
        const struct task_line *line = id ? grade_jobs_find(jobs, id) : &jobs->tasks.lines[i];
        if (!line)
            refuse_id(jobs, id);
        good = line && add_line(jobs, line) && good;
    }
    return good;
}

bool grade_read(struct grade_jobs *jobs, const struct grade_options *options)
{
    jobs->options = options;
    jobs->dirs.works_in = own_directory_place();
    jobs->dirs.data = options->data;
    if (tasks_are_folders(options->task)) {
        cli_say("%s is a directory: sluice task import %s -o tasks.jsonl makes tasks of it", options->task,
                options->task);
        return false;
    }
    if (!tasks_read(&jobs->tasks, options->task, 1) || jobs->tasks.bad)
        return false;
    if (!jobs->tasks.count) {
        cli_say("there is no task in %s", options->task);
        return false;
    }
    for (size_t i = 0; i < options->task_dirs.count; i++) {
        struct fail fail = {0};
        if (grade_dirs_add(&jobs->dirs, options->task_dirs.items[i], &fail) < 0) {
            cli_say("--task-dir %s", fail.text);
            return false;
        }
    }
    return options->rows ? grade_rows_read(jobs, options->rows) : choose(jobs);
}
