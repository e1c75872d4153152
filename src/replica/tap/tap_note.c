/* Requests whose intents are entries of the journal. These are most writes to remote storages when
 * the store is embedded. */
#include "base/vec.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

static struct ended *note_new(struct taps *t, int slot, struct mark *mark)
{
    struct ended *n = xzalloc(sizeof(*n));

    *n = (struct ended){.slot = slot, .mark = mark};
    journal_read(t->journal, slot, &n->what);
    atomic_fetch_add(&t->noted, 1);
    return n;
}

/* --- entries of the last process --- */

void notes_open(struct taps *t, bool *kept)
{
    struct err why = {0};

    *kept = false;
    if (!t->o.journal || !t->o.boot.len)
        return;
    if (journal_open(&t->journal, t->o.journal, t->o.boot, kept, &why) < 0)
        log_warn(t->o.log, "replica.no_journal", log_z("error", why.text));
}

struct slots {
    VEC(int) all;
};

static void note_slot(void *ctx, int slot, const struct journal_entry *e)
{
    struct slots *s = ctx;

    (void)e;
    vec_push(&s->all, slot);
}

/* Hands the entries of the last process to the recorder. The outcome of their requests is not
 * known, and the storage may still be working on them (docs/replication.md, R4). The first epoch is
 * reached when these entries are recorded or left to tasks. */
int notes_take_left(struct taps *t, struct err *err)
{
    struct slots left = {0};
    struct journal_entry e;
    int code = 0;

    if (!t->journal)
        return 0;
    /* By now every bucket whose entries may be lost has a mark that says "suspect". */
    journal_begin(t->journal, t->o.boot);
    journal_each(t->journal, note_slot, &left);
    for (size_t i = 0; i < left.all.len && code == 0; i++) {
        struct mark *mark = NULL;
        journal_read(t->journal, left.all.items[i], &e);
        code = marks_hold(t, e.storage, e.bucket, &mark, err);
        if (code < 0)
            break;
        struct ended *n = note_new(t, left.all.items[i], mark);
        n->outcome = OUTCOME_UNKNOWN;
        n->phase = phase_enter(t);
        recorder_take(t, n, false);
    }
    if (left.all.len)
        log_info(t->o.log, "replica.intents_found", log_u("requests", left.all.len));
    vec_release(&left.all);
    return code;
}

/* --- requests --- */

bool note_begin(struct taps *t, const struct intended *i, struct capture *out)
{
    struct journal_entry e = {i->storage->name, i->bucket, i->keys[0], i->changes};
    struct mark *mark = NULL;

    if (!t->journal || atomic_load(&t->stuck) ||
        marks_hold(t, e.storage, e.bucket, &mark, NULL) < 0)
        return false;
    int slot = journal_add(t->journal, &e);
    if (slot < 0) {
        marks_drop(t, mark);
        return false;
    }
    atomic_fetch_add(&t->count_intents, 1);
    out->noted = note_new(t, slot, mark);
    return true;
}

int note_leave(struct taps *t, const struct ended *n, struct err *err)
{
    struct storage storage = {.name = n->what.storage};
    struct intended i = {.storage = &storage, .bucket = n->what.bucket, .changes = n->what.changes};
    struct intent *in = intent_new(&i, &n->what.key, 1);
    int code = intent_announce(t, in, 0, err);

    intent_free(in);
    return code;
}

void note_end(struct taps *t, const struct ended *n, bool safe)
{
    if (safe) {
        journal_remove(t->journal, n->slot);
        marks_drop(t, n->mark);
    }
    atomic_fetch_sub(&t->noted, 1);
}
