/*
 * option.h - one thing that a program can be told on its command line: a row of a table. From the row come its
 * parsing, its bounds, its line of --help and of the docs.
 *
 * Values go into a struct of the program's own, by offset. A FLAG is a bool, a TEXT a const char *, a LIST a struct
 * texts; the others are a uint64_t: a NUMBER, a DURATION in milliseconds (duration.h), a SIZE in bytes (size.h), a WORD
 * by its place among those of `value`, "full|process|none"; but a REAL, which is a double. Texts are borrowed from
 * argv.
 *
 * A table may be a .def file, whose rows are OPTION(KIND, name, value, "meaning", .field = ..., ...). Of one the struct
 * and the array are made:
 *
 *     struct told {
 *     #define OPTION OPTION_FIELD
 *     #include "options.def"
 *     #undef OPTION
 *     };
 *     static const struct option rows[] = {
 *     #define OPTION(...) OPTION_ROW(struct told, __VA_ARGS__)
 *     #include "options.def"
 *     #undef OPTION
 *     };
 *
 * There a field has its unit in its name: DURATION, grace is grace_ms, and SIZE, outbox is outbox_bytes. On the command
 * line a name's _ is a -.
 */
#ifndef SLUICE_COMMON_CMDLINE_OPTION_H
#define SLUICE_COMMON_CMDLINE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "common/cmdline/duration.h"
#include "common/cmdline/size.h"

enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_LIST,
    OPTION_WORD,
    OPTION_NUMBER,
    OPTION_DURATION,
    OPTION_SIZE,
    OPTION_REAL
};

enum { TEXTS_MAX = 64 };
struct texts {
    const char *items[TEXTS_MAX + 1]; /* NULL behind the last, where all were zero at first */
    size_t count;
};

#define OPTION_NOT_GIVEN UINT64_MAX /* as preset: zero means something else */

/* A preset beyond its bounds says that it was not given; what holds then says `standard`, or the meaning. */
struct option {
    const char *name; /* without "--" */
    enum option_kind kind;
    size_t offset;
    const char *value; /* how --help names it; NULL for a FLAG */
    const char *doc;
    uint64_t preset, min, max; /* NUMBER, DURATION, SIZE; a WORD's preset is a place, too; a REAL's max 0: no bound */
    double real;               /* a REAL's preset, which may be beyond its bounds, too */
    const char *text;          /* a TEXT's preset */
    const char *standard;      /* what holds when it is not given, in words; NULL: the preset */
    uint64_t bare_ms;          /* a DURATION's when only its name is given; then a value is --name=VALUE */
    const char *old_name;      /* what it was called, which is taken, too; NULL: nothing else */
    const char *of;            /* the first arguments that it goes with, "prepare prune"; NULL: any */
    bool required;             /* a TEXT */
};

/* ---- of a .def file --------------------------------------------------------------------- */

#define OPTION_MEMBER_FLAG(name) name
#define OPTION_MEMBER_TEXT(name) name
#define OPTION_MEMBER_LIST(name) name
#define OPTION_MEMBER_WORD(name) name
#define OPTION_MEMBER_NUMBER(name) name
#define OPTION_MEMBER_DURATION(name) name##_ms
#define OPTION_MEMBER_SIZE(name) name##_bytes
#define OPTION_MEMBER_REAL(name) name

#define OPTION_TYPE_FLAG bool
#define OPTION_TYPE_TEXT const char *
#define OPTION_TYPE_LIST struct texts
#define OPTION_TYPE_WORD uint64_t
#define OPTION_TYPE_NUMBER uint64_t
#define OPTION_TYPE_DURATION uint64_t
#define OPTION_TYPE_SIZE uint64_t
#define OPTION_TYPE_REAL double

#define OPTION_FIELD(kind, name, value, doc, ...) OPTION_TYPE_##kind OPTION_MEMBER_##kind(name);
#define OPTION_ROW(type, kind, name, value, doc, ...)                                                                  \
    {#name, OPTION_##kind, offsetof(type, OPTION_MEMBER_##kind(name)), value, doc, ##__VA_ARGS__},

/* ---- what all of cmdline use -------------------------------------------------------------- */

enum { OPTION_NAME_SIZE = 48 };
/* As it is written, with - for _. */
void option_name(const struct option *option, char ret[OPTION_NAME_SIZE]);
bool option_is(const struct option *option, const char *name, size_t name_len);

/* What the row says, into the struct. */
void option_preset(const struct option *option, void *into);
/* -EINVAL with a sentence that names the option and says what it takes. */
int option_set(const struct option *option, void *into, const char *text, struct fail *fail);
/* A number as its kind is written: "8", "1h30m", "64MiB", "full". */
void option_format(const struct option *option, uint64_t number, char *ret, size_t size);

#endif
