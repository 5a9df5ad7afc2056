/* Recorded trajectories: JSON lines, each read for the few numbers that are of use here. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "broker/simulate/shape.h"
#include "common/base/cleanup.h"

/* ---- a trajectory ------------------------------------------------------------------------- */

static double number_of(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value > 0 && value < 1e12 ? value : 0;
}

static bool is_role(const json_t *turn, const char *role)
{
    const char *text = json_string_value(json_object_get(turn, "role"));
    return text && strcmp(text, role) == 0;
}

static bool add_turn(struct recorded *recorded, const json_t *turn)
{
    struct recorded_turn *more = realloc(recorded->turns, (recorded->turn_count + 1) * sizeof(*more));
    if (!more)
        return false;
    recorded->turns = more;
    more[recorded->turn_count++] = (struct recorded_turn){.context = (uint32_t)number_of(turn, "offset"),
                                                          .sampled = (uint32_t)number_of(turn, "length")};
    return true;
}

/* The assistant's turns, each with what the tools after it took. False when out of memory. */
static bool read_traces(struct recorded *recorded, const json_t *traces, double *model_s)
{
    size_t t, i;
    json_t *trace, *turn;
    json_array_foreach(traces, t, trace) json_array_foreach(json_object_get(trace, "turns"), i, turn)
    {
        double seconds = number_of(turn, "seconds");
        if (is_role(turn, "assistant")) {
            *model_s += seconds;
            if (number_of(turn, "length") >= 1 && !add_turn(recorded, turn))
                return false;
        } else if (recorded->turn_count) {
            recorded->turns[recorded->turn_count - 1].tool_s += (float)seconds;
        }
    }
    return true;
}

/* What the run took beside calls and tools. */
static double rest_of(const struct recorded *recorded, const json_t *line, double model_s)
{
    double rest = number_of(line, "run_ms") / 1000 - model_s;
    for (size_t i = 0; i < recorded->turn_count; i++)
        rest -= (double)recorded->turns[i].tool_s;
    return rest > 0 ? rest : 0;
}

/* 1: taken; 0: it says nothing of how long tasks are; else negative errno. */
static int read_line(struct recorded *recorded, const json_t *line, struct fail *fail)
{
    const char *outcome = json_string_value(json_object_get(line, "outcome"));
    const char *group = json_string_value(json_object_get(line, "group"));
    const json_t *traces = json_object_get(line, "traces");
    double model_s = 0;
    if (!outcome || !group || !json_is_array(traces))
        return fail_set(fail, -EINVAL, "is not a trajectory: it lacks %s",
                        !outcome ? "outcome"
                        : !group ? "group"
                                 : "traces");
    if (strcmp(outcome, "ok") != 0 && strcmp(outcome, "agent") != 0)
        return 0;
    recorded->group = strdup(group);
    if (!recorded->group || !read_traces(recorded, traces, &model_s))
        return fail_set(fail, -ENOMEM, "out of memory");
    recorded->init_s = number_of(line, "init_ms") / 1000;
    recorded->setup_s = rest_of(recorded, line, model_s);
    recorded->eval_s = number_of(line, "eval_ms") / 1000;
    return recorded->turn_count > 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

static void recorded_finish(struct recorded *recorded)
{
    free(recorded->group);
    free(recorded->turns);
    *recorded = (struct recorded){0};
}

static int add_line(struct shape *shape, uint64_t number, const char *text, struct fail *fail)
{
    json_error_t error;
    json_t *line = json_loads(text, 0, &error);
    if (!line)
        return fail_set(fail, -EINVAL, "is not JSON: %s", error.text);
    struct recorded *more = realloc(shape->recorded, (shape->recorded_count + 1) * sizeof(*more));
    if (!more) {
        json_decref(line);
        return fail_set(fail, -ENOMEM, "out of memory");
    }
    shape->recorded = more;
    struct recorded *recorded = &more[shape->recorded_count];
    *recorded = (struct recorded){.serial = number};
    int code = read_line(recorded, line, fail);
    json_decref(line);
    shape->recorded_count += code > 0;
    shape->left_out += code == 0;
    if (code <= 0)
        recorded_finish(recorded);
    return code < 0 ? code : 0;
}

static int by_group(const void *a, const void *b)
{
    const struct recorded *one = a, *other = b;
    int order = strcmp(one->group, other->group);
    return order ? order : (one->serial > other->serial) - (one->serial < other->serial);
}

static int index_groups(struct shape *shape, struct fail *fail)
{
    qsort(shape->recorded, shape->recorded_count, sizeof(*shape->recorded), by_group);
    shape->groups = calloc(shape->recorded_count, sizeof(*shape->groups));
    if (!shape->groups)
        return fail_set(fail, -ENOMEM, "out of memory");
    for (size_t i = 0; i < shape->recorded_count; i++)
        if (i == 0 || strcmp(shape->recorded[i].group, shape->recorded[i - 1].group) != 0)
            shape->groups[shape->group_count++] = i;
    return 0;
}

int shape_read(struct shape *shape, const char *path, struct fail *fail)
{
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    *shape = (struct shape){0};
    if (!file)
        return fail_set(fail, -errno, "cannot open %s: %s", path, strerror(errno));
    int code = 0;
    for (uint64_t number = 1; code == 0 && getline(&line, &size, file) > 0; number++) {
        if (line[strspn(line, " \t\r\n")] == '\0')
            continue;
        code = add_line(shape, number, line, fail);
        if (code < 0)
            return fail_wrap(fail, "%s:%llu", path, (unsigned long long)number);
    }
    if (ferror(file))
        return fail_set(fail, -EIO, "cannot read %s: %s", path, strerror(errno));
    if (!shape->recorded_count)
        return fail_set(fail, -EINVAL,
                        "%s: no trajectory in it ended ok or as the agent's with a model "
                        "call",
                        path);
    return index_groups(shape, fail);
}

void shape_finish(struct shape *shape)
{
    for (size_t i = 0; i < shape->recorded_count; i++)
        recorded_finish(&shape->recorded[i]);
    free(shape->recorded);
    free(shape->groups);
    *shape = (struct shape){0};
}
