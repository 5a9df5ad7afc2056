/*
 * task.h - a task, read from its JSON. The fields, their defaults and limits are
 * said once in task.def, from which come this reader, the refusals and
 * docs/tasks.md. Broker, workers and client all read tasks with this file.
 *
 * task_parse is pure: JSON in, struct out; no file, no clock. A refusal names the
 * field by its path: "eval.command", "files[2].path", "limits.run_s".
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_H
#define SLUICE_SCHEMAS_TASK_TASK_H

#include "common/base/arena.h"
#include "schemas/limits.h"
#include "schemas/messages/message.h"

enum {
    TASK_BYTES_MAX = 1 << 20,
    TASK_VALUES_MAX = 65536, /* of its JSON: every name and value, at any depth */
    TASK_LEVELS_MAX = 64,    /* likewise: objects and lists within one another */
    TASK_MESSAGES_MAX = 256,
    TASK_FILES_MAX = 256,
    TASK_SETUP_MAX = 64,
    TASK_TOOLS_MAX = 16,
    TASK_SCRIPT_MAX = 1024,
    TASK_GRANTS_MAX = 8,
    TASK_STATUSES_MAX = 16,
    TASK_ANSWERS_MAX = 64,
    TASK_OPTIONS_MAX = 26, /* A to Z */
    TASK_HANDLERS_MAX = 8,
    TASK_STEPS_MAX = 256,
    TASK_STEP_NAME_MAX = 58, /* "step.NAME" is a part of a verdict */
    TASK_STEP_CHANGE_S = 10, /* what opening and closing an evaluation of a step may take, in the agent's sandbox ... */
    TASK_STEP_APART_S = 50,  /* ... and in one of its own: what the agent has left is packed for it */
    TASK_REWARDS_MAX = 64,
    TASK_REWARD_NAME_MAX = 63,
    TASK_TESTS_MAX = 4096,
    TASK_TEST_NAMES_MAX = 32768,
    TASK_EXPECTED_TESTS_MAX = 16384,
    TASK_PROTECTED_MAX = 256,
    TASK_HIDDEN_MAX = 64,
    TASK_ARTIFACTS_MAX = 64,
    TASK_EXCLUDE_MAX = 64,
    TASK_COLLECT_MAX = 16,
    TASK_JUDGE_FILES_MAX = 16,
    TASK_CRITERIA_MAX = 32, /* at most VERDICT_PARTS_MAX */
    TASK_CHOICES_MAX = 16,
    TASK_JUDGE_SAMPLES_MAX = 15,
    TASK_TOP_K_MAX = 64, /* of a teacher's likeliest ids */
    HANDLER_NAME_MAX = 64,
    TASK_VARIABLES_BYTES_MAX = 6144, /* of one list, names and values */
    TASK_GRANT_SIZE = 33             /* of a grant's name, with its NUL */
};

/* Of the evaluator "verifier", where the task says nothing else. */
#define TASK_VERIFIER_COMMAND "/tests/test.sh"
#define TASK_REWARD_DIR "/logs/verifier"

struct task_message {
    char *role; /* "system", "user" or "assistant" */
    char *content;
};

/* A file written into the sandbox, text or base64 in the JSON, or what a source holds. */
struct task_file {
    /* Absolute inside the sandbox, or relative to the working directory; no "..". Of a source perhaps "/" or ".". */
    const char *path;
    /* On the worker's node: a file, or a directory or tar, whose content goes into `path`; NULL: `content`. */
    const char *source;
    const uint8_t *content;
    size_t content_len;
    unsigned mode; /* permission bits, default 0644 */
};

struct task_variables {
    const char **each; /* "NAME=VALUE" */
    size_t count, bytes;
};

struct task_file_list {
    struct task_file *each;
    size_t count;
};

struct task_text_list {
    const char **each;
    size_t count;
};

/* The least that a part of a verdict may be; "reward" is also the reward itself. */
struct task_least {
    char name[TASK_REWARD_NAME_MAX + 1];
    double value;
};

struct task_least_list {
    struct task_least *each;
    size_t count;
};

/* A command run in the agent's sandbox, once the agent has ended. */
struct task_collect {
    const char *command;
    const char *user; /* whose home it has; NULL: the agent's */
    uint64_t timeout_s;
};

struct task_collect_list {
    struct task_collect *each;
    size_t count;
};

/* What of the agent's files an evaluator in a sandbox of its own is given. */
struct task_artifact {
    const char *path;     /* absolute inside the sandbox, or relative to the working directory; no ".." */
    const char **exclude; /* patterns of what of a directory is left out */
    size_t exclude_count;
};

struct task_artifact_list {
    struct task_artifact *each; /* NULL: none is named */
    size_t count;
};

/* An image made of a Dockerfile. */
struct task_build {
    const char *dockerfile;      /* its text; NULL: there is no build */
    const char *context;         /* on the worker's node: a directory or a tar */
    struct task_file_list files; /* in its place; none of them a source */
    const char *target;
    struct task_variables args;
    struct task_text_list grants; /* what RUN may reach */
    uint64_t timeout_s;           /* of `build` a part of limits.init_s, once the task was read */
};

struct task_step {
    const char *name, *prompt;
    struct task_file_list files;
    struct task_text_list setup;
    struct {
        struct task_file_list files;
        struct task_text_list commands;
        struct task_variables env;
        const char *answer;
    } solution;
    struct {
        const char *command; /* NULL: the task's */
        struct task_file_list files;
        struct task_variables env;        /* no `each`: the task's */
        struct task_collect_list collect; /* behind the task's */
        const char *sandbox;              /* as all that follows: NULL, or no `each`: the task's */
        struct task_artifact_list artifacts;
        const char *image;       /* in place of the task's image and build ... */
        struct task_build build; /* ... and so is this */
        const char *workdir, *user;
        struct task_text_list grants;
    } eval;
    struct task_least_list min_reward; /* empty: none */
    uint64_t run_s, eval_s;            /* 0: the task's */
};

/* A call that a replay makes. */
struct task_call {
    const char *tool;
    const char *arguments; /* a JSON object, as text */
    const char *result;    /* what it gave when it was recorded; NULL: unknown */
    int64_t status;        /* so; -1: unknown */
};

/* A message of agent.recorded, as it is read. */
struct task_recorded {
    const char *role, *content, *tool; /* tool: NULL where it is no call */
    int64_t exit_status;
};

/* A handler that comes with the task. */
struct task_handler {
    const char *name, *command;
};

/* What a judge is asked. */
struct task_criterion {
    const char *name, *text;
    double weight;
    const char **choices; /* from the worst to the best; none, and no numbers: no and yes */
    size_t choice_count;
    double min, max;    /* it is a number where max is above min */
    const char *better; /* "high" or "low" */
    const char *need;   /* "required" or "optional" */
};

struct task_judge {
    const char *policy; /* whose engines judge */
    const char *self;   /* "refuse" or "allow": of the task's own policy */
    const char *view;   /* "answer", "conversation" or "files" ... */
    const char **files; /* ... these */
    size_t file_count;
    struct task_criterion *criteria;
    size_t criterion_count;
    const char *reference; /* in their place; NULL: there is none */
    const char *swap;      /* "check" or "skip" */
    uint64_t samples;
    const char *combine; /* "median" or "majority" */
    double temperature;
    uint64_t max_tokens, text_bytes;
    const char *system, *prompt; /* NULL: the usual ones */
};

/* A teacher, which scores what was sampled. */
struct task_score {
    const char *engine; /* the policy whose engines do; NULL: none */
    uint64_t top_k;     /* of the likeliest ids beside each; 0: none */
    uint64_t timeout_s;
};

/* What a sandbox stands on: an image, or what a Dockerfile makes, of that (NULL or "host": of what it says itself). */
struct task_base {
    const char *image;
    const struct task_build *build;
};

struct task_sampling {
    double temperature, top_p, min_p;
    uint64_t top_k;      /* 0: off */
    uint64_t max_tokens; /* a turn */
    int64_t seed;        /* -1: the engine's choice; else seed + sample is used */
};

struct task_limits {
    uint64_t init_s, run_s, eval_s; /* a stage's seconds */
    uint64_t total_s;               /* from submit to end, queues and retries included */
    uint64_t command_s;             /* one tool call's or evaluator command's seconds */
    uint64_t context_tokens;        /* prompt and sampled together; 0: the engine's own limit */
    uint64_t sampled_tokens;        /* in all turns together; 0: no limit */
    uint64_t output_bytes;          /* of one command shown to the model */
    uint64_t memory_mib;            /* of all the sandbox's processes together */
    uint64_t disk_mib;              /* what the sandbox may write, all files together */
    uint64_t processes;
    uint64_t inodes;   /* 0: by disk_mib */
    uint64_t file_mib; /* any one file */
    uint64_t cpus;     /* 0: all of the worker's */
    uint64_t gpus;
    int64_t versions_behind; /* since its first turn, at a turn's beginning; -1: any number */
    const char *on_stale;    /* "stop", "refresh" or "mark" */
};

/* eval.swe: a patch of a repository, judged by its tests. */
struct task_swe {
    const char *repository, *base_commit;
    const char *test_patch;            /* NULL: none */
    const char *script, *test_command; /* one of them */
    const char *prepare;               /* NULL: nothing */
    const char **fail_to_pass, **pass_to_pass;
    size_t fail_to_pass_count, pass_to_pass_count;
    const char **expected; /* "NAME\tSTATUS", in place of both */
    size_t expected_count;
    const char *log_parser, *eval_type, *witness;
    const char **protected; /* NULL: the usual ones */
    size_t protected_count;
};

/* What becomes of a reward by the number of sampled tokens. */
struct task_shaping {
    uint64_t max_tokens;    /* 0: no penalty */
    uint64_t buffer_tokens; /* 1 to max_tokens, where there is one */
    double penalty;
    const char *truncated; /* "keep" or "filter" */
};

struct task {
    struct arena arena;            /* the task itself, and all that it points to but texts of defaults */
    const char *id;                /* "task" */
    const char *kind;              /* "sandbox" (default) or "noop": a row of the task-kind table */
    const char *policy;            /* whose engines sample it; "default" */
    struct task_message *messages; /* "prompt" is one user message */
    size_t message_count;
    const char *image;   /* a directory, or "host" (default): this host's own root, read-only */
    const char *user;    /* inside: a name or a number, and perhaps a group; NULL: the image's */
    const char *workdir; /* where commands start; NULL: the image's */
    struct task_variables env;
    struct task_build build;
    struct task_file *files;
    size_t file_count;
    const char **setup; /* bash commands run in /workspace by init, in order */
    size_t setup_count;

    const char **grants; /* what the agent may reach, by name; the worker knows them */
    size_t grant_count;
    const char **init_grants; /* what set-up may reach; NULL: the same */
    size_t init_grant_count;

    const char *agent_kind;   /* a word of agent.kind, or a handler's; "replay", "oracle" and "none" sample nothing */
    const char *agent_engine; /* "auto", or "none": a handler's agent that samples nothing */
    const char **tools;       /* names, as settled: never absent */
    size_t tool_count;
    struct task_call *script; /* replay */
    size_t script_count;
    const char *agent_form;      /* "auto", or a row of the table of forms */
    const char *agent_tool_role; /* "auto", "user" or "tool" */
    const char *agent_harness;   /* harness: a program by its name, or "command" */
    const char *agent_command;   /* of the latter; else NULL */
    uint32_t trained;            /* harness: the labels of the traces that are learned from (schemas/labels.h) */
    uint64_t idle_s;             /* session: of silence, and it ends */
    uint64_t max_turns, max_traces;
    uint64_t max_format_errors; /* in a row */
    uint64_t max_repeats;       /* of a call, in a row; 0: any number */
    const char *on_repeat;      /* "end" or "warn" */

    const char **hidden; /* from the agent alone */
    size_t hidden_count;

    struct task_file *solution_files;
    size_t solution_file_count;
    const char **solution_commands; /* bash, in order */
    size_t solution_command_count;
    struct task_variables solution_env;
    const char *solution_answer; /* NULL: none */

    struct task_sampling sampling;

    const char *eval_kind;                    /* "command", "math", "none" (no reward), or a handler's */
    const char *eval_command;                 /* command, verifier: run by bash -c; NULL: TASK_VERIFIER_COMMAND */
    const char *eval_reward_dir;              /* verifier: holds its rewards; NULL: TASK_REWARD_DIR */
    const char *eval_reward_file;             /* command: holds a number; NULL: the exit status is the verdict */
    uint8_t eval_statuses[TASK_STATUSES_MAX]; /* command: those that are verdicts */
    size_t eval_status_count;                 /* 0: none were given, and 0 and 1 are */
    const char *eval_sandbox;                 /* "fresh" or "agent" */
    const char *eval_trust;                   /* "none" or "image" */
    struct task_file *eval_files;             /* written only into the evaluator's sandbox */
    size_t eval_file_count;
    struct task_artifact_list artifacts; /* in place of all that the agent left; no `each`: all of it */
    struct task_collect_list collect;
    const char *eval_image;       /* of the evaluator's own; NULL: the task's */
    struct task_build eval_build; /* so, of a Dockerfile */
    const char *eval_workdir;     /* NULL: `workdir`, or where it has an image of its own what that says */
    const char *eval_user;        /* likewise of `user` */
    struct task_variables eval_env;
    const char **eval_grants; /* what the evaluator may reach */
    size_t eval_grant_count;
    const char **eval_answers; /* math, choice, exact: those that are accepted, in place of eval_answer */
    size_t eval_answer_count;
    const char *eval_options[TASK_OPTIONS_MAX];     /* choice: their texts, A's first; NULL: there is no such option */
    size_t eval_option_count;                       /* 0: the texts are not known */
    const char *eval_extract;                       /* math, choice, exact: a word of task.def */
    const char *eval_normalize;                     /* exact: likewise */
    double eval_tolerance, eval_tolerance_absolute; /* math */
    const char *eval_answer;                        /* math, choice, exact: the one that is accepted */
    const char *eval_tests;                         /* code: an object of JSON: inputs and outputs, or asserts */
    const char *eval_checker;                       /* code: "lines", "exact", "words" or "floats" ... */
    const char *eval_checker_program;               /* ... or "program": this one, of eval_files */
    const char *eval_score;                         /* code: "all" or "fraction" */
    double eval_test_s;                             /* code: CPU seconds of a test */
    const char *eval_source;                        /* code: a file; NULL: the agent's answer */

    struct task_swe swe;
    struct task_judge judge; /* judge */

    struct task_step *steps; /* in place of messages; steps.h */
    size_t step_count;
    const char *steps_reward; /* "mean" or "final" */

    struct task_handler *handlers;
    size_t handler_count;

    struct task_score score;
    struct task_shaping shaping;
    struct task_limits limits;
    uint64_t samples; /* default for submit, 1 */
};

/*
 * What stands for the task's image in names and circuit breakers: image, or where a Dockerfile says
 * it what its first FROM names, unexpanded. Cut to size.
 */
void task_image_name(const struct task *task, char *ret, size_t size);

/* Whether its run needs an engine, of task->policy. */
bool task_needs_engine(const struct task *task);

/* The policy whose engine an eval job is given, for a judge, a teacher or both; NULL: it needs none. */
const char *task_eval_policy(const struct task *task);
/* Whether what it sampled is scored by a teacher, of task->score.engine; seconds beyond limits.eval_s that may take. */
bool task_needs_teacher(const struct task *task);
uint64_t task_score_s(const struct task *task);
/* Whether its evaluation needs an engine, of task->judge.policy; whether it is judged in that view. */
bool task_needs_judge(const struct task *task);
bool task_judge_reads(const struct task *task, const char *view);
/* Whether it is answered by a number from min to max. */
bool task_criterion_is_number(const struct task_criterion *criterion);

/* 1 to HANDLER_NAME_MAX of letters, digits, '_', '.' and '-', beginning with a letter. */
bool handler_name_is_valid(struct slice name);

/* What a handler can be to a task (docs/handlers.md). */
enum handler_role { HANDLER_AGENT, HANDLER_TOOL, HANDLER_EVALUATOR, HANDLER_HOOK, HANDLER_ROLE_COUNT };
const char *handler_role_wire(enum handler_role role);
bool handler_role_parse(struct slice wire, enum handler_role *ret);

/* What a stage of a task needs a worker's handlers to offer: names that are neither built in nor the task's own. */
struct task_need {
    enum handler_role role;
    const char *name; /* the task's */
};
enum { TASK_NEEDS_MAX = TASK_TOOLS_MAX + 2 };
/* Of a session, which is built in: only some workers take them. As the broker says needs. */
#define TASK_SESSION "session"
#define TASK_SESSION_NEED "agent:" TASK_SESSION
size_t task_needs(const struct task *task, enum stage stage, struct task_need ret[TASK_NEEDS_MAX]);
/* The handler of that name that comes with the task; NULL: none does. */
const struct task_handler *task_handler_find(const struct task *task, const char *name);
bool task_tool_is_built_in(const char *name);
/* The n-th name of a role that needs no handler, for "did you mean"; empty behind the last. */
struct slice handler_built_in(enum handler_role role, size_t n);
/* Whether an eval job is given the run's record: its evaluator sees the conversation, or a teacher scores it. */
bool task_eval_reads_record(const struct task *task);
/* Whether code of others may see its JSON in that stage: a handler, or what an evaluator runs. Else nobody reads its
 * metadata there. */
bool task_is_shown(const struct task *task, enum stage stage);
/* Whether it is evaluated where the agent worked (eval.sandbox agent). */
bool task_is_evaluated_there(const struct task *task);
/* By what is posted to its session, as its run ends. */
bool task_is_posted(const struct task *task);
/* Whether the run worker evaluates it, so that no eval job follows: there, or step by step. */
bool task_is_evaluated_by_run(const struct task *task);
/* Seconds that these may take, one after the other. */
uint64_t task_collect_s(const struct task_collect_list *collect);
/* Seconds that a run job may take beyond limits.run_s, for what is done in its sandbox beside the agent's work. */
uint64_t task_after_run_s(const struct task *task);
/* Whether its evaluator stands on an image of its own; seconds that it may take to make that, beyond limits.eval_s. */
bool task_has_own_image(const struct task *task);
uint64_t task_before_eval_s(const struct task *task);
/* What set-up and the agent stand on; what the evaluator does. */
struct task_base task_base_of_agent(const struct task *task);
struct task_base task_base_of_evaluator(const struct task *task);
/* Whether it is evaluated by files that hold its rewards (eval.kind verifier). */
bool task_has_verifier(const struct task *task);
const char *task_reward_dir(const struct task *task);
/* By the words of task.def and evaluators.def. */
bool task_agent_is_built_in(const struct task *task);
bool task_evaluator_is_built_in(const struct task *task);

/* Whether there is anything that the agent oracle can do or say. */
bool task_has_solution(const struct task *task);

/* Whether its shaping asks how long a rollout was. */
bool task_is_shaped(const struct task *task);

/* 1 to 32 of a-z, 0-9 and -, beginning with a letter: it is part of a path and of a variable's name. */
bool task_grant_is_valid(const char *name);

/* Whether it has a ".." among its names. */
bool path_climbs(const char *path);
/* Not a directory by its form: it does not end in "/" or "/.". */
bool path_names_a_file(const char *path);
/* USER or USER:GROUP, by name or number; a variable's name. */
bool task_user_is_valid(const char *user);
bool task_variable_is_valid(const char *name);

/* The caller owns *ret (task_destroy); NULL on refusal. `json` is one JSON object. */
struct task *task_parse(struct slice json, struct refusal *no);
void task_destroy(const struct task *task);

#endif
