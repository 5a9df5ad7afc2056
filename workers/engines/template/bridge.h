/*
 * bridge.h - the turn template of a chat template for one role: what it writes between a reply and the
 * next one, around the content of a turn in that role. Learnt from the template's own output on
 * sentinels; cut at special tokens, the only places where text may be cut without changing its
 * ids. Pure: no engine, no fiber.
 *
 * For ChatML the turn template is
 *     special <|im_end|>, literal "\n", special <|im_start|>, content "user\n" _ "",
 *     special <|im_end|>, literal "\n", special <|im_start|>, literal "assistant\n"
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_BRIDGE_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_BRIDGE_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/engines/server/turn.h"

/* Letters only, so that no template escapes them and no tokenizer finds them special. */
#define TURN_TEMPLATE_USER "SluiceSaysThis"
#define TURN_TEMPLATE_REPLY "SluiceHearsThat"

enum { TURN_TEMPLATE_PARTS_MAX = 64 };

/* What a template wrote around the last TURN_TEMPLATE_REPLY and TURN_TEMPLATE_USER; borrowed from the text. */
struct turn_template_tail {
    struct slice before, after; /* reply | before | user's content | after */
};

struct turn_template_special { /* a special token and its name in text */
    uint32_t id;
    char *name;
};

struct turn_template_part {
    enum { TURN_TEMPLATE_SPECIAL, TURN_TEMPLATE_LITERAL, TURN_TEMPLATE_CONTENT } kind;
    uint32_t id;       /* special */
    char *text;        /* literal; content: what stands before it, with no special between */
    char *text_after;  /* content: what stands behind it, likewise */
    struct tokens ids; /* literal: its ids, filled in by the caller */
};

struct turn_template_parts {
    struct turn_template_part list[TURN_TEMPLATE_PARTS_MAX];
    size_t count;
};

/*
 * Between two turns in this role with no reply between. Where it has a special token, contents are
 * encoded each by itself: `text` follows the first, then come the parts, and `text_after` stands
 * before the second. Else they are encoded together, with `text` between them.
 */
struct turn_template_gap {
    bool is_known; /* else one turn at a time has a bridge */
    char *text, *text_after;
    struct turn_template_parts parts;
};

struct turn_template {
    struct turn_template *next; /* the owner's */
    size_t users;               /* likewise */
    enum tell_role role;
    struct fail unfit; /* its code is 0, or there is no turn template, and why */
    struct turn_template_parts parts;
    struct turn_template_gap gap;
    bool trims_left, trims_right; /* the template strips blanks at the content's ends: */
    uint32_t blanks;              /* bit i: turn_template_blanks[i] is one that it strips */
    uint32_t rewrites;            /* replies that it does not keep as they were: history_rewrite.h */
    char *lead, *tail;            /* what turn_template_render writes before one reply, and behind it */
};

/* The one whose name the text starts with, the longest of several; NULL: none. */
const struct turn_template_special *turn_template_special_at(struct slice text,
                                                             const struct turn_template_special *specials,
                                                             size_t count);

/* Bytes of the text until the name of the next of them. */
size_t turn_template_until_special(struct slice text, const struct turn_template_special *specials, size_t count);

/* What some template language or other takes for blank, in UTF-8; NULL ends the table. */
extern const char *const turn_template_blanks[];

/* False when the sentinels did not come back once each and in order. */
bool turn_template_tail_find(struct slice rendered, struct turn_template_tail *ret);
/* What stands between two turns in a row, each TURN_TEMPLATE_USER, around which `tail` is written. */
bool turn_template_gap_find(struct slice rendered, const struct turn_template_tail *tail, struct slice *ret);
/* What is written between the turn before the last TURN_TEMPLATE_REPLY and this. */
bool turn_template_head_find(struct slice rendered, struct slice *ret);
/*
 * What became of blanks put around the content: `plain` and `padded` are tails of the same
 * messages without and with `left`/`right` around the sentinel. False when neither kept nor
 * stripped.
 */
bool turn_template_learn_trim(struct turn_template *turn_template, const struct turn_template_tail *plain,
                              const struct turn_template_tail *padded, const char *left, const char *right);
/* Cuts the tail at special tokens. -ENOTSUP with a sentence when it cannot be a frame. */
int turn_template_build(struct turn_template *turn_template, const struct turn_template_tail *tail,
                        const struct turn_template_special *specials, size_t count, struct fail *fail);
/* Cuts the gap likewise, and makes it known. False when it has too many parts. */
bool turn_template_build_gap(struct turn_template *turn_template, struct slice gap,
                             const struct turn_template_special *specials, size_t count);
void turn_template_finish(struct turn_template *turn_template);

/* How many runs of text these contents are, each to encode in one piece with special tokens off. */
size_t turn_template_runs(const struct turn_template *turn_template, size_t count);
bool turn_template_text(const struct turn_template *turn_template, const struct slice *contents, size_t count,
                        size_t run, struct buffer *ret);
/* The special token that the template ends a reply with; the bridge follows it. */
uint32_t frame_end(const struct turn_template *turn_template);
/*
 * The bridge, with those texts' ids in their places. -ENOTSUP when they hold a special token of the
 * turn template: content must never become a role.
 */
int turn_template_assemble(const struct turn_template *turn_template, const struct tokens *runs, size_t count,
                           struct tokens *ret, struct fail *fail);

#endif
