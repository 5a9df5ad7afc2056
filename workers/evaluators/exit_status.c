#include "workers/evaluators/exit_status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, SIGNALS = 128, SIGNAL_MAX = 64, MISUSE = 2, PATH_SIZE = 4096 };

/* ---- the last lines of what it said ------------------------------------------------------------ */

struct line {
    const char *text;
    size_t len;
};

/* The next one; false at the end. */
static bool take_line(const char **at, struct line *ret)
{
    if (**at == '\0')
        return false;
    *ret = (struct line){*at, strcspn(*at, "\n")};
    *at += ret->len + ((*at)[ret->len] == '\n');
    return true;
}

static bool starts_with(struct line line, const char *word)
{
    size_t len = strlen(word);
    return line.len >= len && memcmp(line.text, word, len) == 0;
}

static bool is_blank(struct line line)
{
    for (size_t i = 0; i < line.len; i++)
        if (!isspace((unsigned char)line.text[i]))
            return false;
    return true;
}

/* "module.Error" or "module.Error: words", as Python names an exception. */
static bool is_exception(struct line line)
{
    size_t len = 0;
    while (len < line.len && (isalnum((unsigned char)line.text[len]) || line.text[len] == '_' || line.text[len] == '.'))
        len++;
    return len > 0 && !isdigit((unsigned char)line.text[0]) && (len == line.len || line.text[len] == ':');
}

/* ---- whose code a traceback is of ----------------------------------------------------------------- */

/* The evaluator's: a file that it brought, of the system, or none at all ("<string>"). */
static bool is_evaluators(const struct task *task, const char *path)
{
    static const char *const systems[] = {"/usr/", "/lib", "/bin/", "/sbin/", "/opt/", "<"};
    char full[PATH_SIZE];
    for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
        if (strncmp(path, systems[i], strlen(systems[i])) == 0)
            return true;
    for (size_t i = 0; i < task->eval_file_count; i++) {
        const char *brought = task->eval_files[i].path;
        const char *workdir = task->workdir ? task->workdir : "/workspace";
        snprintf(full, sizeof(full), "%s%s%s", brought[0] == '/' ? "" : workdir, brought[0] == '/' ? "" : "/", brought);
        if (strcmp(path, full) == 0 || strcmp(path, brought) == 0)
            return true;
    }
    return false;
}

/* `  File "PATH", line 3, in f`: of a file that may be the agent's. */
static bool is_others_frame(const struct task *task, struct line line)
{
    static const char head[] = "  File \"";
    char path[PATH_SIZE];
    if (!starts_with(line, head))
        return false;
    snprintf(path, sizeof(path), "%.*s", (int)(line.len - strlen(head)), line.text + strlen(head));
    path[strcspn(path, "\"")] = '\0';
    return !is_evaluators(task, path);
}

/* ---- uncaught exceptions ------------------------------------------------------------------------- */

/* The next line, without the margin ("  | ") that the traceback of a group of exceptions has. */
static bool take_traceback_line(const char **at, struct line *ret)
{
    if (!take_line(at, ret))
        return false;
    size_t margin = 0;
    while (margin < ret->len && ret->text[margin] == ' ')
        margin++;
    if (margin > 0 && margin + 1 < ret->len && strchr("|+", ret->text[margin]) && ret->text[margin + 1] == ' ') {
        ret->text += margin + 2;
        ret->len -= margin + 2;
    }
    return true;
}

static bool begins_traceback(struct line line)
{
    return starts_with(line, "Traceback (most recent call last):") ||
           starts_with(line, "Exception Group Traceback (most recent call last):");
}

/* unittest tells of exceptions that it caught, and sums up. */
static bool is_summed_up(const char *rest)
{
    for (struct line line; take_line(&rest, &line);)
        if (starts_with(line, "FAILED ("))
            return true;
    return false;
}

/* Where the last traceback begins, or what Python says of a main program that it cannot compile; NULL. */
static const char *find_traceback(const char *errors)
{
    const char *found = NULL, *at = errors, *before = NULL;
    struct line line;
    bool was_inside = false;
    while (take_traceback_line(&at, &line)) {
        if (begins_traceback(line))
            found = line.text;
        else if (starts_with(line, "  File \"") && !was_inside)
            before = line.text;
        was_inside = line.len > 0 && (line.text[0] == ' ' || begins_traceback(line));
        if (before && !was_inside &&
            (starts_with(line, "SyntaxError:") || starts_with(line, "IndentationError:") ||
             starts_with(line, "TabError:")))
            found = found && found > before ? found : before;
    }
    return found;
}

/*
 * The exception that ended the program, of the evaluator's own code. What follows may be its message's own lines, its
 * notes, or what others said at the end: whoever caught it and judged all the same has the reward file to say so.
 */
static bool is_uncaught(const struct task *task, const char *errors, struct line *ret)
{
    const char *at = find_traceback(errors);
    struct line line;
    if (!at)
        return false;
    while (take_traceback_line(&at, &line) && (line.text[0] == ' ' || begins_traceback(line)))
        if (is_others_frame(task, line))
            return false; /* the agent's code failed, and this says so */
    *ret = line;
    return is_exception(line) && !starts_with(line, "AssertionError") && !is_summed_up(at);
}

/* "/usr/bin/python3: No module named pytest", of -m. */
static bool has_no_module(const char *errors, struct line *ret)
{
    const char *at = errors;
    bool is_last = false;
    for (struct line line; take_line(&at, &line);)
        if (!is_blank(line)) {
            const char *colon = memmem(line.text, line.len, ": No module named ", 18);
            const char *python = memmem(line.text, line.len, "python", 6);
            is_last = colon && python && python < colon && !memchr(line.text, ' ', (size_t)(colon - line.text));
            *ret = line;
        }
    return is_last;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static bool is_verdict(const struct task *task, int status)
{
    if (task->eval_status_count == 0)
        return status <= 1;
    return memchr(task->eval_statuses, status, task->eval_status_count) != NULL;
}

void exit_status_judge(const struct task *task, int status, const char *errors, struct verdict *ret)
{
    struct line said;
    *ret = (struct verdict){0};
    if (status == NOT_EXECUTABLE)
        verdict_say(ret, "a program that cannot be executed");
    else if (status == NOT_FOUND)
        verdict_say(ret, "a command that was not found");
    else if (status > SIGNALS && status <= SIGNALS + SIGNAL_MAX)
        verdict_say(ret, "signal %d in what it ran", status - SIGNALS);
    else if (status == MISUSE && strstr(errors, ": syntax error "))
        verdict_say(ret, "a syntax error");
    else if (!is_verdict(task, status))
        verdict_say(ret, "which is not a verdict (eval.verdict_statuses)");
    else if (status != 0 && (is_uncaught(task, errors, &said) || has_no_module(errors, &said)))
        verdict_say(ret, "an uncaught exception of Python (%.*s)", (int)(said.len < 200 ? said.len : 200), said.text);
    else
        verdict_set_reward(ret, status == 0 ? 1.0 : 0.0, NULL);
}
