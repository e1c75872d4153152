/* A sharded bucket in a folder, its mover, and images of the folder. */
#include "unit/shard/move_lab.h"

#include "base/clock.h"
#include "object/local/local.h"
#include "object/part_names.h"
#include "os/file.h"
#include "shard/log.h"
#include "shard/names.h"
#include "store/store.h"
#include "unit/object/local_check.h"
#include "unit/server_db.h"

#include <sys/stat.h>

enum { LAB_CONFIG_DB = 3, LAB_PART_MIN = 10, LAB_KEYS = 60 };

#define LAB_BUCKET STR("photos")
#define LAB_OWNER  STR("alice")

/* --- life --- */

static bool lab_rests(void *ctx, const struct sharded *s)
{
    const struct move_lab *l = ctx;

    return l->rests;
}

static void lab_on_plain(void *ctx, struct sharded *s)
{
    struct move_lab *l = ctx;

    (void)s;
    atomic_fetch_add(&l->plain, 1);
}

static void lab_on_gone(void *ctx, struct sharded *s)
{
    struct move_lab *l = ctx;

    (void)s;
    atomic_fetch_add(&l->gone, 1);
}

static void lab_log_name(char out[64])
{
    struct arena a = {0};

    snprintf(out, 64, STR_FMT, STR_ARG(shard_map_name(&a, LAB_BUCKET)));
    arena_release(&a);
}

/* Opens the bucket as the start of a weir does. */
static void lab_serve(struct move_lab *l)
{
    struct bucket *log = NULL;
    struct shard_map *head = NULL;
    bool serves = false;
    char name[64];
    struct err err = {0};

    lab_log_name(name);
    int code = l->home->ops->open_bucket(&log, l->home, LAB_OWNER, str_z(name), &err);
    if (code == 0)
        code = log_head(log, &head, &err);
    if (code == 0) {
        l->sharded = sharded_new(l->routes, l->home, log, head); /* takes both references */
        log = NULL;
        CHECK_OK(mover_recover(l->mover, l->sharded, &serves, &err));
        if (!serves) {
            sharded_unref(l->sharded);
            l->sharded = NULL;
        }
    } else {
        CHECK(code == ERR_NO_BUCKET || code == ERR_NOT_FOUND);
    }
    if (log)
        log->ops->unref(log);
    if (l->sharded)
        l->bucket = sharded_bucket(l->sharded);
    else if (l->home->ops->open_bucket(&l->bucket, l->home, LAB_OWNER, LAB_BUCKET, &err) < 0)
        l->bucket = NULL;
}

void move_lab_open(struct move_lab *l, const char *name)
{
    struct local_options o = {.name = "home", .part_min = LAB_PART_MIN, .reserve_bytes = 1};
    char folder[200];
    struct err err = {0};

    *l = (struct move_lab){0};
    snprintf(l->dir, sizeof(l->dir), "%s/%s", test_dir(), name);
    snprintf(folder, sizeof(folder), "%s/objects", l->dir);
    mkdir(l->dir, 0700);
    CHECK_OK(server_db_open(&l->db, l->dir, &err));
    CHECK_OK(store_open_embedded(&l->store, l->db, LAB_CONFIG_DB, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&l->routes, l->store, NULL, &err));
    o.folder = folder;
    o.db = l->db;
    CHECK_OK(routes_open_local(l->routes, &o, &err));
    l->home = routes_main(l->routes);
    l->mover = mover_new(&(struct mover_options){
        .rests = lab_rests, .plain = lab_on_plain, .gone = lab_on_gone, .ctx = l});
    lab_serve(l);
}

void move_lab_close(struct move_lab *l)
{
    mover_free(l->mover);
    if (l->bucket)
        l->bucket->ops->unref(l->bucket);
    sharded_unref(l->sharded);
    routes_close(l->routes);
    store_close(l->store);
    db_close(l->db);
}

void move_lab_make(struct move_lab *l, bool versions)
{
    struct bucket_info info = {.name = LAB_BUCKET, .owner = LAB_OWNER, .object_lock = versions};
    struct bucket_info log_info = {.owner = LAB_OWNER};
    struct bucket *log = NULL;
    char name[64];
    struct err err = {0};

    lab_log_name(name);
    log_info.name = str_z(name);
    CHECK_OK(l->home->ops->create_bucket(l->home, &info, &err));
    CHECK_OK(l->home->ops->create_bucket(l->home, &log_info, &err));
    CHECK_OK(l->home->ops->open_bucket(&log, l->home, LAB_OWNER, log_info.name, &err));
    struct shard_map *first = map_first(l->home->name, LAB_BUCKET, LAB_OWNER, STR("house"),
                                        STR("abcd"), (uint64_t)clock_wall_ms());
    CHECK_OK(sharded_id_now(l->home, LAB_BUCKET, &first->id, &err));
    CHECK_OK(log_commit(log, first, clock_mono_ns() + NS_PER_S, &err));
    map_unref(first);
    log->ops->unref(log);
    lab_serve(l);
}

void move_lab_image(struct move_lab *l, const char *name)
{
    char dir[160], path[200];
    struct err err = {0};

    snprintf(dir, sizeof(dir), "%s/%s", test_dir(), name);
    CHECK_OK(dir_remove_tree(dir, &err));
    CHECK_INT(mkdir(dir, 0700), 0);
    local_hold(l->home);
    snprintf(path, sizeof(path), "%s/db", dir);
    CHECK_OK(db_checkpoint(l->db, path, &err));
    snprintf(path, sizeof(path), "%s/objects", dir);
    CHECK_OK(local_copy_files(l->home, path, &err));
    local_unhold(l->home);
}

/* --- moves --- */

void move_lab_begin(struct move_lab *l, enum shard_move_kind kind, const char *at)
{
    struct move_request q = {.kind = kind, .at = at ? str_z(at) : STR_EMPTY};
    struct err err = {0};

    CHECK_OK(mover_begin(l->mover, l->sharded, &q, &err));
}

void move_lab_run(struct move_lab *l, size_t limit)
{
    struct move *r;

    while ((r = move_find(l->mover, l->sharded)) && r->phase != MOVE_NONE) {
        r->limit = size_min(r->limit, limit);
        move_work(l->mover, r);
        CHECK_STR(str_z(r->error.text), STR_EMPTY);
    }
}

void move_lab_do(struct move_lab *l, enum shard_move_kind kind, const char *at, size_t limit)
{
    move_lab_begin(l, kind, at);
    move_lab_run(l, limit);
}

/* --- looking --- */

static void dump_version(struct move_lab *l, const struct object_info *listed, struct buf *out)
{
    struct arena a = {0};
    struct get_result r = {0};
    struct err err = {0};

    buf_appendf(out, STR_FMT " " STR_FMT " " STR_FMT " %llu %lld%s%s", STR_ARG(listed->key),
                STR_ARG(listed->version), STR_ARG(listed->etag), (unsigned long long)listed->size,
                (long long)listed->modified_ms, listed->is_latest ? " latest" : "",
                listed->is_marker ? " marker" : "");
    if (!listed->is_marker) {
        CHECK_OK(l->bucket->ops->head(l->bucket, &a, listed->key, listed->version, NULL, &r, &err));
        const struct object_meta *m = &r.info.meta;
        buf_appendf(out, " [" STR_FMT "] %lld %d %d " STR_FMT " parts %u", STR_ARG(m->tags),
                    (long long)m->retain_until_ms, m->retain_compliance, m->legal_hold,
                    STR_ARG(m->owner), r.info.part_count);
    }
    buf_append_z(out, "\n");
    arena_release(&a);
}

static void dump_versions(struct move_lab *l, struct buf *out)
{
    struct arena a = {0};
    struct list_options o = {.limit = 7}; /* so that there are many pages */
    struct list_result page = {.more = true};
    struct err err = {0};

    while (page.more) {
        CHECK_OK(l->bucket->ops->list_versions(l->bucket, &a, &o, &page, &err));
        for (size_t i = 0; i < page.count; i++)
            dump_version(l, &page.entries[i].info, out);
        o.after = page.next;
        o.after_version = page.next_version;
    }
    arena_release(&a);
}

static void dump_uploads(struct move_lab *l, struct buf *out)
{
    struct arena a = {0};
    struct list_options o = {.limit = 5};
    struct upload_list page = {.more = true};
    struct part_list parts;
    struct err err = {0};

    while (page.more) {
        CHECK_OK(l->bucket->ops->list_uploads(l->bucket, &a, &o, &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            const struct upload_info *u = &page.uploads[i];
            buf_appendf(out, "upload " STR_FMT " " STR_FMT " %lld", STR_ARG(u->key), STR_ARG(u->id),
                        (long long)u->started_ms);
            CHECK_OK(l->bucket->ops->list_parts(l->bucket, &a, u, 0, 100, &parts, &err));
            for (size_t p = 0; p < parts.count; p++)
                buf_appendf(out, " %u:" STR_FMT, parts.parts[p].number,
                            STR_ARG(parts.parts[p].etag));
            buf_append_z(out, "\n");
        }
        o.after = page.next_key;
        o.after_version = page.next_id;
    }
    arena_release(&a);
}

void move_lab_dump(struct move_lab *l, struct buf *out)
{
    dump_versions(l, out);
    dump_uploads(l, out);
}

/* Every row of the place is in one of its segments. */
static void check_place(struct move_lab *l, const struct shard_map *m, size_t place)
{
    struct arena a = {0};
    struct bucket *b = NULL;
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result page = {.more = true};
    struct upload_list uploads;
    struct err err = {0};

    CHECK_OK(move_open_place(l->sharded, m, m->places[place].number, &b, &err));
    while (page.more) {
        CHECK_OK(b->ops->list_versions(b, &a, &o, &page, &err));
        for (size_t i = 0; i < page.count; i++)
            CHECK_INT(m->segments[map_segment_of(m, page.entries[i].info.key)].place, place);
        o.after = page.next;
        o.after_version = page.next_version;
    }
    CHECK_OK(b->ops->list_uploads(b, &a, &(struct list_options){.limit = 1000}, &uploads, &err));
    for (size_t i = 0; i < uploads.count; i++)
        CHECK_INT(m->segments[map_segment_of(m, uploads.uploads[i].key)].place, place);
    b->ops->unref(b);
    arena_release(&a);
}

static size_t count_parts(struct move_lab *l)
{
    struct arena a = {0};
    struct bucket_info *all = NULL;
    size_t count = 0, parts = 0;
    struct err err = {0};

    CHECK_OK(
        l->home->ops->list_buckets(l->home, &a, STR_EMPTY, STR_EMPTY, 1000, &all, &count, &err));
    for (size_t i = 0; i < count; i++)
        parts += bucket_name_is_part(all[i].name);
    arena_release(&a);
    return parts;
}

static void check_segments(const struct shard_map *m, const char *want)
{
    struct buf text = BUF_INIT(0);

    for (size_t i = 0; i < m->segment_count; i++) {
        if (i > 0)
            buf_appendf(&text, " " STR_FMT " ", STR_ARG(m->segments[i].after));
        buf_appendf(&text, "%u", map_place_at(m, i)->number);
    }
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

void move_lab_check(struct move_lab *l, const char *segments)
{
    struct err err = {0};

    if (l->sharded) {
        struct shard_map *m = table_map(l->sharded->table);
        CHECK_OK(map_check(m, &err));
        CHECK_INT(m->state, SHARD_ACTIVE);
        CHECK_INT(m->closed, SHARD_OPEN);
        CHECK_INT(m->move.id.len, 0);
        for (size_t i = 0; i < m->place_count; i++)
            check_place(l, m, i);
        CHECK_INT(count_parts(l), m->place_count); /* its shards and the map bucket */
        if (segments)
            check_segments(m, segments);
        map_unref(m);
    } else {
        CHECK_INT(count_parts(l), 0);
    }
    local_collect(l->home);
    CHECK_OK(local_check_whole(l->home, &err));
}

/* --- contents --- */

static void fill_versions(struct move_lab *l, const char *key, unsigned i)
{
    struct arena a = {0};
    struct object_meta m = {.tags = STR("a=b"), .legal_hold = i % 3 == 0};
    struct err err = {0};

    if (i % 4 == 1)
        lab_put(l->bucket, &a, key, lab_bytes(20000, i)); /* a file */
    if (i % 5 == 2)
        lab_remove(l->bucket, &a, key, STR_EMPTY); /* a marker */
    if (i % 5 == 3) {
        m.retain_until_ms = clock_wall_ms() + MS_PER_DAY;
        CHECK_OK(l->bucket->ops->set_meta(l->bucket, &a, str_z(key), STR_EMPTY,
                                          META_TAGS | META_RETENTION | META_LEGAL_HOLD, &m, NULL,
                                          &err));
    }
    arena_release(&a);
}

static void fill_upload(struct move_lab *l, const char *key, unsigned i)
{
    struct arena a = {0};
    struct upload_info u = lab_upload(l->bucket, &a, key);

    lab_part(l->bucket, &a, &u, 1, lab_bytes(100, i));
    if (i % 2)
        lab_part(l->bucket, &a, &u, 2, lab_bytes(20000, i));
    arena_release(&a);
}

void move_lab_fill(struct move_lab *l, bool versions)
{
    struct arena a = {0};
    char key[64];

    for (unsigned i = 0; i < LAB_KEYS; i++) {
        snprintf(key, sizeof(key), "%c/%02u", 'a' + i / 6, i % 6);
        lab_put(l->bucket, &a, key, lab_bytes(10 + i, i));
        if (versions)
            fill_versions(l, key, i);
        if (i % 7 == 0)
            fill_upload(l, key, i);
    }
    fill_upload(l, "k/only-an-upload", 1);
    fill_upload(l, "zz", 2);
    arena_release(&a);
}
