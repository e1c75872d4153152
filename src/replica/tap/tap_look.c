/* Looks through the intents in the queue: changes that are announced and not recorded yet. */
#include "replica/tap/tap_int.h"

#include <stdio.h>

enum {
    PAGE = 4096, /* intents in a page: more than usual, so that one call reads all of them */
    WALKS = 10,
};

struct walk {
    struct queue *queue;
    intent_fn *fn;
    void *ctx;
    bool enough;
    char last[2 * ID_HEX_LEN]; /* id of the last intent of the previous page */
};

static int walk_one(struct walk *w, const struct task_info *t, struct err *err)
{
    struct intent in = {.a = ARENA_INIT(0)};
    int code = intent_read(&in, t->task.payload, err);

    /* An intent whose objects cannot be read is still open: the change may have been made. */
    if (code == 0 || (code == ERR_INVALID && in.storage.len && in.what.bucket.len))
        w->enough = !w->fn(w->ctx, t, &in);
    arena_release(&in.a);
    return code == ERR_INVALID ? 0 : code; /* a bad intent is reported by its handler */
}

/* Reads one page of intents. Pages overlap by one intent. ERR_AGAIN: the page does not begin with
 * the last intent of the previous page. So some intents have left the queue meanwhile, and others
 * may have been skipped. */
static int walk_page(struct walk *w, struct queue_page *page, size_t *count, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct task_info *list = NULL;
    int code = queue_tasks(w->queue, &a, page, &list, count, err);

    if (code == 0 && page->skip && (*count == 0 || !str_eq(list[0].task.id, str_z(w->last))))
        code = ERR_AGAIN;
    for (size_t i = page->skip ? 1 : 0; code == 0 && i < *count && !w->enough; i++)
        code = walk_one(w, &list[i], err);
    if (code == 0 && *count) {
        struct str id = list[*count - 1].task.id;
        snprintf(w->last, sizeof(w->last), STR_FMT, STR_ARG(id));
        page->skip += *count - 1;
    }
    arena_release(&a);
    return code;
}

static int walk_state(struct walk *w, enum task_state state, struct err *err)
{
    int code = ERR_AGAIN;

    for (int i = 0; i < WALKS && code == ERR_AGAIN; i++) {
        struct queue_page page = {INTENT_QUEUE, state, 0, PAGE};
        size_t count = PAGE;
        code = 0;
        while (code == 0 && count == PAGE && !w->enough)
            code = walk_page(w, &page, &count, err);
    }
    if (code == ERR_NOT_FOUND) /* the queue was never used */
        return 0;
    return code == ERR_AGAIN ? err_set(err, ERR_BUSY, "intents move faster than they can be read")
                             : code;
}

/* Reads the tasks of one state after the other, in the order in which an intent's task passes
 * through the states, so that no intent is missed. */
int intents_each(struct queue *q, intent_fn *fn, void *ctx, struct err *err)
{
    static const enum task_state states[] = {TASK_SCHEDULED, TASK_PENDING, TASK_ACTIVE,
                                             TASK_RETRY,     TASK_PENDING, TASK_ACTIVE,
                                             TASK_SCHEDULED, TASK_ARCHIVED};
    struct walk w = {.queue = q, .fn = fn, .ctx = ctx};
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(states) && code == 0 && !w.enough; i++)
        code = walk_state(&w, states[i], err);
    return code;
}

struct looked_for {
    struct str storage, bucket;
    int64_t due_s; /* only intents that come due by then; 0: all intents */
    bool found;
};

static bool intent_is_other(void *ctx, const struct task_info *t, const struct intent *in)
{
    struct looked_for *f = ctx;
    bool is = str_eq(in->storage, f->storage) && str_eq(in->what.bucket, f->bucket);

    if (is && f->due_s)
        is = !in->again && (t->state != TASK_SCHEDULED || t->due_s <= f->due_s);
    f->found |= is;
    return !is;
}

int taps_intents_open(struct queue *q, struct str storage, struct str bucket, int64_t due_s,
                      bool *out, struct err *err)
{
    struct looked_for f = {storage, bucket, due_s, false};
    int code = taps_suspect(q, storage, bucket, &f.found, err);

    if (code == 0 && !f.found)
        code = intents_each(q, intent_is_other, &f, err);
    *out = f.found;
    return code;
}
