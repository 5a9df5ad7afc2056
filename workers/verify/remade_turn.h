/* remade_turn.h - one turn that was given, whose ids are compared with what is made again of the messages. Awaits. */
#ifndef SLUICE_WORKERS_VERIFY_REMADE_TURN_H
#define SLUICE_WORKERS_VERIFY_REMADE_TURN_H

#include "common/base/buffer.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/engines/engine.h"

/* One turn that was given. */
struct remade_turn {
    struct engine *engine;
    const struct record_message *messages; /* the record's */
    size_t own, from, end; /* the task's are before `own`; what this turn says is from `from` to `end` */
    const uint32_t *ids;   /* of its trace */
    size_t offset, count;
    struct buffer said; /* what the ids say; empty: not asked yet */
    size_t off_at;      /* the furthest place where all before is as it was made again */
    uint32_t off_wanted;
    bool is_off;
    bool is_exact; /* the messages are those that the template took */
};

/* That it cannot be made so is an answer, 0; that nobody answers is none. */
int remade_unless_impossible(int error);
/* Whether these are the turn's ids; where they are not, the furthest place of all that were compared is noted. */
bool remade_is_same(struct remade_turn *turn, const struct tokens *made);
/* What the ids say, into turn->said, once. */
int remade_say(struct remade_turn *turn, struct fail *fail);
/* Whether the text holds what was said here, each behind the one before. */
bool remade_holds_messages(const struct remade_turn *turn, struct slice text);
/* Several answers in a row, or nobody knows: whether the ids are at least the tokenizer's own of their text. */
int remade_is_text(struct remade_turn *turn, bool *ret, struct fail *fail);

#endif
