/*
 * list.h - doubly linked lists through the things they hold. A head and an
 * unlinked member point to themselves, so that list_remove may be called twice.
 * The list owns nothing.
 */
#ifndef SLUICE_COMMON_CONTAINERS_LIST_H
#define SLUICE_COMMON_CONTAINERS_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* `item` may be removed, or freed, while the loop goes on; other members may not. */
#define LIST_EACH(item, head, member)                                                                                  \
    for (struct list *at_ = (head)->next, *then_ = at_->next;                                                          \
         at_ != (head) && ((item) = container_of(at_, __typeof__(*(item)), member), true);                             \
         at_ = then_, then_ = at_->next)

static inline void list_init(struct list *list) { list->prev = list->next = list; }

static inline bool list_is_empty(const struct list *list) { return list->next == list; }

static inline void list_insert(struct list *member, struct list *prev, struct list *next)
{
    member->prev = prev;
    member->next = next;
    prev->next = next->prev = member;
}

static inline void list_push_front(struct list *head, struct list *member) { list_insert(member, head, head->next); }

static inline void list_push_back(struct list *head, struct list *member) { list_insert(member, head->prev, head); }

static inline void list_remove(struct list *member)
{
    member->prev->next = member->next;
    member->next->prev = member->prev;
    list_init(member);
}

#endif
