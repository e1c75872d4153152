/* Requests whose intents are entries of the journal: most writes to remote storages when the store
 * is this process's own. */
#include "base/vec.h"
#include "replica/tap_int.h"

#include <stdlib.h>

/* --- what the last process left --- */

struct left {
    int slot;
    struct journal_entry what;
};

struct leftovers {
    VEC(struct left) all;
};

static void take_note(void *ctx, int slot, const struct journal_entry *e)
{
    struct leftovers *l = ctx;
    struct left one = {slot, *e};

    vec_push(&l->all, one);
}

static bool same_place(const struct journal_entry *a, const struct journal_entry *b)
{
    return a->changes == b->changes && str_eq(a->storage, b->storage) &&
           str_eq(a->bucket, b->bucket);
}

/* As a task, which records them when it comes due: the storage may be at it still. */
static int announce(struct taps *t, const struct journal_entry *like, const struct str *keys,
                    size_t count, struct err *err)
{
    struct storage storage = {.name = like->storage};
    struct intended i = {.storage = &storage, .bucket = like->bucket, .changes = like->changes};
    struct intent *in = intent_new(&i, keys, count);
    int code = intent_announce(t, in, err);

    intent_free(in);
    return code;
}

static int announce_left(struct taps *t, const struct left *some, size_t count, struct err *err)
{
    struct str keys[SHARE_MAX];

    for (size_t i = 0; i < count; i++)
        keys[i] = some[i].what.key;
    int code = announce(t, &some->what, keys, count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        journal_remove(t->journal, some[i].slot);
    return code;
}

static int announce_leftovers(struct taps *t, const struct leftovers *l, struct err *err)
{
    int code = 0;

    for (size_t at = 0, n; at < l->all.len && code == 0; at += n) {
        const struct left *first = &l->all.items[at];
        size_t bytes = intent_key_len(first->what.key);
        for (n = 1; at + n < l->all.len && n < SHARE_MAX; n++) {
            bytes += intent_key_len(first[n].what.key);
            if (bytes > INTENT_PAYLOAD_MAX || !same_place(&first->what, &first[n].what))
                break;
        }
        code = announce_left(t, first, n, err);
    }
    return code;
}

/* Without one every intent is a task. */
int notes_open(struct taps *t, bool *kept, struct err *err)
{
    struct leftovers l = {0};
    struct err why = {0};

    *kept = false;
    if (!t->o.journal || !t->o.boot.len)
        return 0;
    if (journal_open(&t->journal, t->o.journal, t->o.boot, kept, &why) < 0) {
        log_warn(t->o.log, "replica.no_journal", log_z("error", why.text));
        return 0;
    }
    journal_each(t->journal, take_note, &l);
    int code = announce_leftovers(t, &l, err);
    if (l.all.len && code == 0)
        log_info(t->o.log, "replica.intents_found", log_u("requests", l.all.len));
    vec_release(&l.all);
    return code;
}

/* --- requests --- */

bool note_begin(struct taps *t, const struct intended *i, struct capture *out, struct err *err)
{
    struct journal_entry e = {i->storage->name, i->bucket, i->keys[0], i->changes};
    struct mark *mark = NULL;

    if (!t->journal || atomic_load(&t->stuck) || marks_hold(t, e.storage, e.bucket, &mark, err) < 0)
        return false;
    int slot = journal_add(t->journal, &e);
    if (slot < 0) {
        marks_drop(t, mark);
        return false;
    }
    struct ended *n = xmalloc(sizeof(*n));
    *n = (struct ended){.slot = slot, .mark = mark};
    journal_read(t->journal, slot, &n->what);
    atomic_fetch_add(&t->count_intents, 1);
    atomic_fetch_add(&t->noted, 1);
    out->noted = n;
    return true;
}

int note_leave(struct taps *t, const struct ended *n, struct err *err)
{
    return announce(t, &n->what, &n->what.key, 1, err);
}

void note_end(struct taps *t, struct ended *n, bool recorded)
{
    if (recorded) {
        journal_remove(t->journal, n->slot);
        marks_drop(t, n->mark);
    }
    atomic_fetch_sub(&t->noted, 1);
}
