/* An intrusive doubly linked list: the node is a member of the listed struct, and nothing is
 * allocated.
 *
 *     struct list waiting; list_init(&waiting);
 *     list_push(&waiting, &job->node);
 *     list_each(&waiting, struct job, node, job) run(job);
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert(struct list *before, struct list *node)
{
    node->prev = before->prev;
    node->next = before;
    before->prev->next = node;
    before->prev = node;
}

static inline void list_push(struct list *l, struct list *node) /* adds `node` at the end */
{
    list_insert(l, node);
}

static inline void list_push_front(struct list *l, struct list *node)
{
    list_insert(l->next, node);
}

/* Removes the node from its list. A node that was removed already may be removed again. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Removes and returns the first node; NULL if empty. */
static inline struct list *list_shift(struct list *l)
{
    struct list *node = l->next;
    if (node == l)
        return NULL;
    l->next = node->next;
    node->next->prev = l;
    list_init(node);
    return node;
}

/* Moves all nodes from `from` to the end of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(node, type, member) container_of(node, type, member)

#define list_each(l, type, member, it)                                                             \
    for (type *it = list_entry((l)->next, type, member); &it->member != (l);                       \
         it = list_entry(it->member.next, type, member))

/* Like list_each(), but the body may remove `it` from the list. */
#define list_each_safe(l, type, member, it)                                                        \
    for (type *it = list_entry((l)->next, type, member),                                           \
              *it##_next = list_entry(it->member.next, type, member);                              \
         &it->member != (l);                                                                       \
         it = it##_next, it##_next = list_entry(it->member.next, type, member))

#endif
