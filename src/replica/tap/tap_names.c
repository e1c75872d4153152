/* Finds out whether the name of a local storage belongs to its folder (docs/replication.md, "Names
 * of folders"). Each process that uses a store has a storage that is called `local`, and a
 * replication means the `local` of one of them.
 *
 * A name that belongs to this folder is remembered, because nobody claims the name of a folder that
 * is in use. For every other name the store is asked each time. */
#include "base/clock.h"
#include "object/overlay.h"
#include "coord/claim.h"
#include "replica/tap/tap_int.h"

#include <limits.h>
#include <unistd.h>

enum { LOOK_MS = 1000, WHERE_MAX = PATH_MAX + 512 };

/* Returns whether names need no claim, because no other process uses the store. */
static bool names_are_ours(const struct taps *t)
{
    return t->o.boot.len || !t->o.config;
}

/* A local storage and its tap. `tap` is NULL if the storage was just added and has no tap yet. */
struct named {
    struct taps *t;
    struct storage *storage;
    struct tap *tap;
};

static void folder_describe(struct storage *s, struct buf *folder, struct buf *where)
{
    char host[256] = "";

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    local_identity(s, folder);
    buf_appendf(where, "%s:%s", host, local_folder(s));
}

static void tap_name_set(struct tap *tap, int code, const struct err *err)
{
    enum name_state state = code == 0               ? NAME_OURS
                            : code == ERR_NOT_FOUND ? NAME_FREE
                            : code == ERR_CONFLICT  ? NAME_OTHERS
                                                    : NAME_UNKNOWN;

    if (atomic_exchange(&tap->name, (int)state) != NAME_OTHERS && state == NAME_OTHERS)
        log_error(tap->taps->o.log, "replica.name_taken", log_s("storage", tap->storage->name),
                  log_z("error", err->text));
}

enum asking { ASK_LOOK, ASK_TAKE, ASK_FORCE };

static int tap_name_ask(const struct named *n, enum asking how, struct err *err)
{
    struct buf folder = {0}, where = BUF_INIT(WHERE_MAX);
    struct replications *r = n->t->o.replications;
    struct err why = {0};

    folder_describe(n->storage, &folder, &where);
    struct claim c = {n->storage->name, buf_str(&folder), buf_str(&where)};
    int code =
        how == ASK_LOOK ? claim_check(r, &c, &why) : claim_take(r, &c, how == ASK_FORCE, &why);
    if (n->tap)
        tap_name_set(n->tap, code, &why);
    buf_release(&folder);
    buf_release(&where);
    return code < 0 ? err_set(err, code, "%s", why.text) : 0;
}

static bool tap_name_is_known(const struct named *n)
{
    return names_are_ours(n->t) || (n->tap && atomic_load(&n->tap->name) == NAME_OURS);
}

int tap_name_check(struct tap *tap, struct err *err)
{
    struct named n = {tap->taps, tap->storage, tap};

    return tap_name_is_known(&n) ? 0 : tap_name_ask(&n, ASK_LOOK, err);
}

int tap_name_take(struct tap *tap, struct err *err)
{
    struct named n = {tap->taps, tap->storage, tap};

    return tap_name_is_known(&n) ? 0 : tap_name_ask(&n, ASK_TAKE, err);
}

int taps_claim(struct taps *t, struct storage *s, bool force, struct err *err)
{
    if (!t || !storage_can(s, STORAGE_FOLDER) || names_are_ours(t))
        return 0;
    struct named n = {t, s, taps_find(t, s)};
    return tap_name_ask(&n, force ? ASK_FORCE : ASK_TAKE, err);
}

/* Returns whether the storage has a bucket. If nobody has claimed the storage's name, a replication
 * cannot mean a storage without buckets. */
static bool has_bucket(struct storage *s)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct bucket_info *list;
    size_t count = 0;
    int code = storage_list_buckets(s, &a, STR_EMPTY, STR_EMPTY, 1, &list, &count, NULL);

    arena_release(&a);
    return code == 0 && count > 0;
}

bool taps_owns(struct taps *t, struct storage *s)
{
    if (!t || !storage_can(s, STORAGE_FOLDER))
        return true;
    struct named n = {t, s, taps_find(t, s)};
    int code = tap_name_is_known(&n) ? 0 : tap_name_ask(&n, ASK_LOOK, NULL);
    return code == 0 || (code == ERR_NOT_FOUND && has_bucket(s));
}

/* Asks the store once a second which folders own the names. So when a storage has lost its name,
 * its clients are refused within a second. */
void names_keep(struct taps *t)
{
    uint64_t now = clock_mono_ns();

    if (names_are_ours(t) || !atomic_load(&t->filter.any) ||
        now - t->named_ns < LOOK_MS * NS_PER_MS)
        return;
    t->named_ns = now;
    for (size_t i = 0; i < atomic_load(&t->tap_count); i++)
        (void)!tap_name_check(t->taps[i], NULL);
}
