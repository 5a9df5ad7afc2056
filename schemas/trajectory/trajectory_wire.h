/*
 * trajectory_wire.h - trajectory.def as tables, for what writes records and verdicts and what
 * reads them. Private to this folder's files and their tests.
 */
#ifndef SLUICE_SCHEMAS_TRAJECTORY_TRAJECTORY_WIRE_H
#define SLUICE_SCHEMAS_TRAJECTORY_TRAJECTORY_WIRE_H

#include "schemas/trajectory/verdict.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(float) == 4,
               "arrays go onto the wire as they lie in memory");

/* An array as it crosses the wire; `data` is borrowed. */
struct record_column {
    char codec[8];
    uint32_t length;
    struct slice data;
};

enum record_type {
    RECORD_TEXT,            /* char[size] */
    RECORD_OPTIONAL_TEXT,   /* the same, absent where it is empty */
    RECORD_STRING,          /* char *, owned */
    RECORD_OPTIONAL_STRING, /* the same, NULL when absent */
    RECORD_BIN,             /* struct slice, borrowed */
    RECORD_U32,
    RECORD_U64,
    RECORD_I32,
    RECORD_REAL,
    RECORD_BOOL,
    RECORD_OPTIONAL_REAL,   /* struct record_seconds */
    RECORD_OPTIONAL_I64,    /* int64_t, absent where it is negative */
    RECORD_SHAPE,           /* struct record_shape */
    RECORD_VALUES,          /* struct record_values */
    RECORD_OPTIONAL_VALUES, /* the same, absent where there are none */
    RECORD_COLUMN,          /* of values of `size` bytes, token_count of them */
    RECORD_LIST,            /* of elements, each a map */
    RECORD_OPTIONAL_LIST,   /* the same, absent where it is empty */
    RECORD_OPTIONAL         /* a map, owned; NULL when absent */
};

enum record_map_id {
#define RECORD_MAP(owner) MAP_##owner,
#define RECORD_FIELD(owner, type, key)
#define RECORD_ADDED(version, owner, type, key)
#define RECORD_LIST(owner, key, element, count, capacity, max)
#define RECORD_ADDED_LIST(version, owner, key, element, count, capacity, max)
#define RECORD_OPTIONAL_LIST(owner, key, element, count, capacity, max)
#define RECORD_OPTIONAL(owner, key, element)
#define RECORD_MAP_END(owner)
#include "schemas/trajectory/trajectory.def"
#undef RECORD_MAP
#undef RECORD_FIELD
#undef RECORD_ADDED
#undef RECORD_LIST
#undef RECORD_ADDED_LIST
#undef RECORD_OPTIONAL_LIST
#undef RECORD_OPTIONAL
#undef RECORD_MAP_END
    RECORD_MAP_COUNT
};

struct record_field {
    const char *key;
    uint32_t since; /* the first version that has it; 0: the version itself */
    enum record_type type;
    size_t offset, size;
    enum record_map_id element; /* OPTIONAL; LIST, with the three below */
    size_t count_offset, capacity_offset, max;
};

struct record_map {
    const struct record_field *fields;
    size_t field_count, size;
};

const struct record_map *record_map_get(enum record_map_id id);
/* Whether a map may be without it. */
bool record_field_is_optional(const struct record_field *field);

/* Appends the map, unchecked; false when out of memory. */
bool record_map_encode(struct buffer *out, enum record_map_id id, const void *base);
/*
 * Reads one map and nothing behind it into the zeroed `base`; keys of `version` and older ones are known, and 0: the
 * map says its version first. `what` begins the refusal's sentence. What values mean together is not looked at.
 */
bool record_map_decode(struct slice bytes, enum record_map_id id, uint32_t version, const char *what, void *base,
                       struct refusal *no);
/* Every TEXT of a map ends within its room and is UTF-8; else *ret_key is the one that is not. */
bool record_texts_check(enum record_map_id id, const void *base, const char **ret_key, enum refusal_reason *ret_reason);

/* The trace's columns: their names, types and shapes, and that floats are finite. `path` leads to the trace. */
bool record_columns_check(const struct record_trace *trace, const char *path, struct refusal *no);

/* A zeroed element more at the list's end, or NULL: out of memory, or `max` are there. */
void *record_list_add(void *list, size_t *count, size_t *capacity, size_t size, size_t max);

#endif
