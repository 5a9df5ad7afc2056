/* What a task says of the environment that its commands run in: who they are, where they start, their variables. */
#include <stdlib.h>
#include <string.h>

#include "schemas/task/read/task_read.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";

bool task_variable_is_valid(const char *name)
{
    size_t len = strspn(name, name_characters);
    return strspn(name, letters) > 0 && name[len] == '\0' && !strpbrk(name, ".-");
}

/* USER or USER:GROUP, each a name or a number. */
bool task_user_is_valid(const char *user)
{
    size_t len = strspn(user, name_characters);
    if (len == 0 || user[0] == '-' || (user[len] != '\0' && user[len] != ':'))
        return false;
    const char *group = user + len + 1;
    return user[len] == '\0' || (*group && *group != '-' && group[strspn(group, name_characters)] == '\0');
}

bool task_read_user(const struct task_place *place, struct task_value value)
{
    const char *user = place_bounded_text(place, value);
    if (!user)
        return false;
    if (!task_user_is_valid(user))
        return refuse(place->no, REFUSAL_BAD_NAME, place->shown,
                      "%s must be a user, or user:group, each by name or number", place->shown);
    return place_set_text(place, user);
}

bool task_read_directory(const struct task_place *place, struct task_value value)
{
    const char *path = place_bounded_text(place, value);
    if (!path)
        return false;
    if (path[0] != '/' || path_climbs(path))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                      "%s must be an absolute path inside the sandbox, without \"..\"", place->shown);
    return place_set_text(place, path);
}

/* ---- variables ---------------------------------------------------------------------------- */

static bool add_variable(const struct task_place *place, const char *name, struct task_value value,
                         struct task_variables *ret)
{
    struct task_place one = *place;
    snprintf(one.shown, sizeof(one.shown), "%.60s.%.60s", place->shown, name);
    if (!task_variable_is_valid(name) || strncmp(name, "SLUICE_", 7) == 0)
        return refuse(
            place->no, REFUSAL_BAD_NAME, place->shown,
            "%s: a variable's name is of letters, digits and _, no digit first, and does not begin with SLUICE_",
            place->shown);
    const char *meant = place_text(&one, value);
    if (!meant)
        return false;
    ret->bytes += strlen(name) + strlen(meant) + 2;
    if (ret->bytes > TASK_VARIABLES_BYTES_MAX)
        return refuse(place->no, REFUSAL_TOO_LARGE, place->shown, "%s has more than %d bytes of names and values",
                      place->shown, TASK_VARIABLES_BYTES_MAX);
    const char *text = arena_printf(place->arena, "%s=%s", name, meant);
    if (!text)
        return place_out_of_memory(place);
    ret->each[ret->count++] = text;
    return true;
}

bool task_read_variables(const struct task_place *place, struct task_value value)
{
    struct task_variables *ret = place_member(place);
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return place_wrong_type(place, "an object of names and texts");
    if (!place_check_bounds(place, (double)task_value_count(value), " elements") ||
        !place_make_list(place, task_value_count(value), sizeof(*ret->each), &ret->each))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const char *name = place_text(place, each.name);
        if (!name || !add_variable(place, name, each.value, ret))
            return false;
    }
    return true;
}
