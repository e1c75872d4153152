/* The file of the journal, which holds intents (replica/tap/tap_journal.h).
 *
 * Each slot has a state, which says whether the slot is used. The state is set after the entry was
 * written, and is cleared first when the entry is removed. The kernel keeps, in order, all that a
 * process wrote to memory until it was killed, so an entry is there whole or not at all. After a
 * crash of the machine any page of the file may be old or new. Then the boot id in the head differs
 * from the machine's, and the entries are ignored. */
#include "replica/tap/tap_journal.h"
#include "os/pages.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    SLOTS = 1024,
    SLOT_BYTES = 2048,
    HEAD_BYTES = 4096,
    BOOT_MAX = 64,
    FREE = 0,
    TAKEN = 1,
};

static const char MAGIC[16] = "weir intents 1";

struct head {
    char magic[sizeof(MAGIC)];
    char boot[BOOT_MAX];
};

struct slot {
    uint32_t changes;
    uint16_t storage_len, bucket_len, key_len, unused;
    char bytes[SLOT_BYTES - 12];
};

/* The file's layout. The states of all slots lie together, so that slots that were never used need
 * no memory. */
struct file {
    union {
        struct head head;
        char page[HEAD_BYTES];
    };
    _Atomic(uint32_t) states[SLOTS];
    struct slot slots[SLOTS];
};

_Static_assert(sizeof(struct slot) == SLOT_BYTES, "slots have no gaps");
_Static_assert(sizeof(struct file) == HEAD_BYTES + SLOTS * (4 + SLOT_BYTES), "nor has the file");

struct journal {
    struct file *file;
    struct mutex lock; /* class "replica.journal" */
    size_t free_count;
    /* Stack of free slots; the slot that was freed last is likely in the cache. */
    uint16_t free[SLOTS];
};

/* --- opening --- */

static bool slot_is_whole(const struct file *f, size_t slot)
{
    const struct slot *s = &f->slots[slot];
    uint32_t state = atomic_load(&f->states[slot]);

    if (state != TAKEN)
        return state == FREE;
    return (size_t)s->storage_len + s->bucket_len + s->key_len <= sizeof(s->bytes);
}

static bool journal_is_of(const struct file *f, struct str boot)
{
    if (memcmp(f->head.magic, MAGIC, sizeof(MAGIC)) != 0 ||
        !str_eq(str_n(f->head.boot, strnlen(f->head.boot, BOOT_MAX)), boot))
        return false;
    for (size_t i = 0; i < SLOTS; i++)
        if (!slot_is_whole(f, i))
            return false;
    return true;
}

/* Empties the file and removes its head. If weir dies now, the next start finds no head and empties
 * the file again. */
static void journal_clear(struct file *f)
{
    memset(&f->head, 0, sizeof(f->head));
    atomic_signal_fence(memory_order_seq_cst);
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store(&f->states[i], FREE);
}

int journal_open(struct journal **out, const char *path, struct str boot, bool *kept,
                 struct err *err)
{
    void *file = NULL;
    bool whole = false;

    if (boot.len == 0 || boot.len > BOOT_MAX)
        return err_set(err, ERR_INVALID, "the boot id of the machine cannot be used");
    int code = pages_map(&file, path, sizeof(struct file), &whole, err);
    if (code < 0)
        return code;
    struct journal *j = xcalloc(1, sizeof(*j));
    j->file = file;
    mutex_init(&j->lock, "replica.journal");
    *kept = whole && journal_is_of(j->file, boot);
    if (!*kept)
        journal_clear(j->file);
    for (size_t i = SLOTS; i-- > 0;)
        if (atomic_load(&j->file->states[i]) == FREE)
            j->free[j->free_count++] = (uint16_t)i;
    *out = j;
    return 0;
}

void journal_begin(struct journal *j, struct str boot)
{
    struct head *h = &j->file->head;

    memset(h->boot, 0, sizeof(h->boot));
    memcpy(h->boot, boot.p, boot.len);
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(h->magic, MAGIC, sizeof(MAGIC));
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    pages_free(j->file, sizeof(*j->file));
    mutex_release(&j->lock);
    free(j);
}

/* --- entries --- */

static int take_slot(struct journal *j)
{
    mutex_lock(&j->lock);
    int slot = j->free_count ? j->free[--j->free_count] : -1;
    mutex_unlock(&j->lock);
    return slot;
}

static char *slot_append(char *to, struct str s)
{
    if (s.len)
        memcpy(to, s.p, s.len);
    return to + s.len;
}

int journal_add(struct journal *j, const struct journal_entry *e)
{
    size_t room = sizeof(j->file->slots[0].bytes);

    if (e->storage.len > room || e->bucket.len > room || e->key.len > room ||
        e->storage.len + e->bucket.len + e->key.len > room)
        return -1;
    int slot = take_slot(j);
    if (slot < 0)
        return -1;
    struct slot *s = &j->file->slots[slot];
    s->changes = e->changes;
    s->storage_len = (uint16_t)e->storage.len;
    s->bucket_len = (uint16_t)e->bucket.len;
    s->key_len = (uint16_t)e->key.len;
    slot_append(slot_append(slot_append(s->bytes, e->storage), e->bucket), e->key);
    atomic_store_explicit(&j->file->states[slot], TAKEN, memory_order_release);
    return slot;
}

void journal_read(const struct journal *j, int slot, struct journal_entry *out)
{
    const struct slot *s = &j->file->slots[slot];
    const char *p = s->bytes;

    out->changes = s->changes;
    out->storage = str_n(p, s->storage_len);
    out->bucket = str_n(p + s->storage_len, s->bucket_len);
    out->key = str_n(p + s->storage_len + s->bucket_len, s->key_len);
}

void journal_remove(struct journal *j, int slot)
{
    atomic_store_explicit(&j->file->states[slot], FREE, memory_order_release);
    mutex_lock(&j->lock);
    j->free[j->free_count++] = (uint16_t)slot;
    mutex_unlock(&j->lock);
}

/* The lock is held during the calls, so that no slot is freed and used again meanwhile. */
void journal_each(struct journal *j, void (*fn)(void *ctx, int slot, const struct journal_entry *e),
                  void *ctx)
{
    struct journal_entry e;

    mutex_lock(&j->lock);
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load_explicit(&j->file->states[i], memory_order_acquire) == TAKEN) {
            journal_read(j, i, &e);
            fn(ctx, i, &e);
        }
    mutex_unlock(&j->lock);
}
