/* torrents: records, one hashing for many, tasks, the collector, and what the tracker is told. */
#include "base/clock.h"
#include "base/hex.h"
#include "db/db.h"
#include "os/thread.h"
#include "meta/error.h"
#include "swarm/torrents_int.h"
#include "unit/server_db.h"
#include "unit/test.h"

enum { TOLD_MAX = 16, SWARM = 4, QUEUE = 1 };

/* One weir without its servers. */
struct lab {
    struct db *db;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct storage *storage;
    struct bucket *bucket;
    struct torrents *torrents;
    struct arena arena;
    struct mutex lock; /* of what the tracker was told: */
    uint8_t known[TOLD_MAX][SHA1_LEN];
    size_t known_count, forgotten;
    bool tracker_fails;
};

static struct storage *find(void *ctx, struct str name)
{
    struct lab *l = ctx;

    return str_eq(name, STR("local")) ? l->storage : NULL;
}

static int track(void *ctx, const uint8_t *info_hash, bool known, struct err *err)
{
    struct lab *l = ctx;

    if (l->tracker_fails)
        return err_code(err, ERR_UNAVAILABLE);
    mutex_lock(&l->lock);
    CHECK(l->known_count < TOLD_MAX);
    if (known)
        memcpy(l->known[l->known_count++], info_hash, SHA1_LEN);
    else
        l->forgotten++;
    mutex_unlock(&l->lock);
    return 0;
}

static void lab_open(struct lab *l, uint64_t at_once)
{
    struct err err = {0};
    char folder[300];
    struct torrents_options o = {.find = find,
                                 .find_ctx = l,
                                 .at_once = at_once,
                                 .track = track,
                                 .track_ctx = l,
                                 .prefix = STR("t:")};

    *l = (struct lab){0};
    mutex_init(&l->lock, "lab");
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&l->stores[i], l->db, i, STORE_DURABLE, NULL, &err));
    l->queue = queue_new(l->stores[QUEUE]);
    snprintf(folder, sizeof(folder), "%s/objects", test_dir());
    CHECK_OK(
        local_open(&l->storage,
                   &(struct local_options){
                       .name = "local", .folder = folder, .db = l->db, .id = 1, .reserve_bytes = 1},
                   &err));
    CHECK_OK(l->storage->ops->create_bucket(
        l->storage, &(struct bucket_info){.name = STR("box"), .owner = STR("alice")}, &err));
    CHECK_OK(l->storage->ops->open_bucket(&l->bucket, l->storage, STR_EMPTY, STR("box"), &err));
    o.store = l->stores[SWARM];
    o.queue = l->queue;
    CHECK_OK(sock_addr_parse(&o.http, STR("127.0.0.1:6969"), &err));
    CHECK_OK(sock_addr_parse(&o.udp, STR(":6970"), &err));
    CHECK_OK(torrents_open(&l->torrents, &o, &err));
}

static void lab_close(struct lab *l)
{
    torrents_close(l->torrents);
    l->bucket->ops->unref(l->bucket);
    l->storage->ops->close(l->storage);
    queue_free(l->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(l->stores[i]);
    db_close(l->db);
    arena_release(&l->arena);
    mutex_release(&l->lock);
}

static void put(struct lab *l, const char *key, struct str body)
{
    struct err err = {0};
    struct str_reader r;
    struct put_result out;

    str_reader_init(&r, body);
    CHECK_OK(l->bucket->ops->put(l->bucket, &l->arena, str_z(key), &r.reader, body.len,
                                 &(struct put_options){0}, &out, &err));
}

/* As the gateway does: a look, then the torrent. */
static int ask(struct lab *l, const char *key, const char *kind, struct torrent_answer *out,
               struct err *err)
{
    static const struct object_conditions none;
    struct get_result got = {0};
    int code = l->bucket->ops->head(l->bucket, &l->arena, str_z(key), STR_EMPTY, &none, &got, err);

    CHECK_INT(code, 0);
    got.info.key = str_z(key);
    *out = (struct torrent_answer){0};
    struct torrent_ask a = {.bucket = l->bucket,
                            .info = &got.info,
                            .kind = str_z(kind),
                            .url = STR("http://s3/box/key"),
                            .host = STR("weir.example")};
    return torrents_write(l->torrents, &l->arena, &a, out, err);
}

static size_t count_rows(struct lab *l)
{
    struct err err = {0};
    struct torrent_row *rows;
    size_t count;

    CHECK_OK(torrents_list(l->torrents, &l->arena, STR_EMPTY, 100, &rows, &count, &err));
    return count;
}

TEST(torrents, the_same_version_gives_the_same_bytes_and_is_told_once)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer first, again;

    lab_open(&l, 0);
    put(&l, "key", STR("some bytes"));
    CHECK_OK(ask(&l, "key", "", &first, &err));
    CHECK_OK(ask(&l, "key", "1", &again, &err));
    CHECK_STR(buf_str(&again.file), buf_str(&first.file));
    CHECK_STR(again.v1, first.v1);
    CHECK_INT(first.v2.len, 0);
    CHECK_INT(l.known_count, 1);
    CHECK(str_find(buf_str(&first.file), STR("30:http://127.0.0.1:6969/announce")) > 0);
    /* who listens on all addresses is reached by the name that the client has used */
    CHECK(str_find(buf_str(&first.file), STR("32:udp://weir.example:6970/announce")) > 0);
    buf_release(&first.file);
    buf_release(&again.file);
    CHECK_OK(ask(&l, "key", "hybrid", &first, &err));
    CHECK_INT(l.known_count, 3);
    CHECK_INT(count_rows(&l), 1);
    buf_release(&first.file);
    lab_close(&l);
}

TEST(torrents, an_overwrite_gives_a_new_hash_and_the_old_one_leaves_the_tracker)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer first, second;
    struct torrent_row row;
    enum torrent_kind kind;

    lab_open(&l, 0);
    put(&l, "key", STR("one"));
    CHECK_OK(ask(&l, "key", "1", &first, &err));
    CHECK_OK(torrents_find(l.torrents, &l.arena, first.v1, &row, &kind, &err));
    put(&l, "key", STR("two"));
    CHECK_OK(ask(&l, "key", "1", &second, &err));
    CHECK(!str_eq(first.v1, second.v1));
    CHECK_INT(l.forgotten, 1);
    CHECK_ERR(torrents_find(l.torrents, &l.arena, first.v1, &row, &kind, &err), ERR_NOT_FOUND);
    CHECK_OK(torrents_find(l.torrents, &l.arena, second.v1, &row, &kind, &err));
    CHECK_STR(row.key, STR("key"));
    CHECK(kind == TORRENT_V1 && row.ready && row.size == 3);
    CHECK_INT(count_rows(&l), 1);
    buf_release(&first.file);
    buf_release(&second.file);
    lab_close(&l);
}

/* Same bytes, same name: one torrent. */
TEST(torrents, a_torrent_of_two_objects_leaves_the_tracker_with_the_second)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer first, second, other;
    struct torrent_row row;
    enum torrent_kind kind;

    lab_open(&l, 0);
    put(&l, "a/key", STR("bytes"));
    put(&l, "b/key", STR("bytes"));
    CHECK_OK(ask(&l, "a/key", "hybrid", &first, &err));
    CHECK_OK(ask(&l, "b/key", "hybrid", &second, &err));
    CHECK_STR(first.v1, second.v1);
    put(&l, "a/key", STR("others"));
    CHECK_OK(ask(&l, "a/key", "1", &other, &err)); /* the record of the first is replaced */
    CHECK_INT(l.forgotten, 0);
    CHECK_OK(torrents_find(l.torrents, &l.arena, first.v2, &row, &kind, &err));
    CHECK_STR(row.key, STR("b/key"));
    CHECK_OK(torrents_remove(l.torrents, &l.arena, &row, &err));
    CHECK_INT(l.forgotten, 2);
    CHECK_ERR(torrents_find(l.torrents, &l.arena, first.v1, &row, &kind, &err), ERR_NOT_FOUND);
    CHECK_OK(torrents_find(l.torrents, &l.arena, other.v1, &row, &kind, &err));
    buf_release(&first.file);
    buf_release(&second.file);
    buf_release(&other.file);
    lab_close(&l);
}

/* Another process hashed the same version, and ended later. */
TEST(torrents, hashes_that_are_kept_again_take_away_no_torrent)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct torrent_row row, again;
    struct torrent_record r;
    enum torrent_kind kind;

    lab_open(&l, 0);
    put(&l, "key", STR("bytes"));
    CHECK_OK(ask(&l, "key", "2", &answer, &err));
    CHECK_OK(torrents_find(l.torrents, &l.arena, answer.v2, &row, &kind, &err));
    CHECK_OK(record_read(l.torrents, &l.arena, row.position, true, &r, &err));
    CHECK_OK(record_begin(l.torrents, &l.arena, row.position,
                          &(struct object_info){.etag = r.etag, .size = r.size}, &err));
    CHECK_OK(record_keep(l.torrents, &l.arena, row.position, r.etag, &r.pieces, &err));
    CHECK_OK(torrents_find(l.torrents, &l.arena, answer.v2, &again, &kind, &err));
    CHECK(kind == TORRENT_V2 && again.ready);
    CHECK_INT(l.forgotten, 0);
    buf_release(&answer.file);
    lab_close(&l);
}

TEST(torrents, one_that_the_tracker_could_not_be_told_of_is_not_handed_out)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;

    lab_open(&l, 0);
    put(&l, "key", STR("bytes"));
    l.tracker_fails = true;
    CHECK_ERR(ask(&l, "key", "1", &answer, &err), ERR_UNAVAILABLE);
    buf_release(&answer.file);
    l.tracker_fails = false;
    CHECK_OK(ask(&l, "key", "1", &answer, &err));
    CHECK_INT(l.known_count, 1);
    buf_release(&answer.file);
    lab_close(&l);
}

TEST(torrents, what_cannot_be_a_torrent_is_refused_before_it_is_read)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;

    lab_open(&l, 0);
    put(&l, "empty", STR(""));
    put(&l, "key", STR("bytes"));
    CHECK_ERR(ask(&l, "empty", "1", &answer, &err), S3_INVALID_REQUEST);
    CHECK_ERR(ask(&l, "key", "3", &answer, &err), S3_INVALID_ARGUMENT);
    CHECK_INT(count_rows(&l), 0);
    lab_close(&l);
}

TEST(torrents, the_collector_drops_what_is_gone_or_replaced_and_nothing_else)
{
    static const char *const keys[] = {"gone", "replaced", "stays:%/x"};
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct remove_result removed;
    struct torrent_row *rows;
    size_t gone, count;

    lab_open(&l, 0);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        put(&l, keys[i], str_z(keys[i]));
        CHECK_OK(ask(&l, keys[i], "1", &answer, &err));
        buf_release(&answer.file);
    }
    CHECK_OK(torrents_collect(l.torrents, &gone, &err));
    CHECK_INT(gone, 0);
    CHECK_OK(l.bucket->ops->remove(l.bucket, &l.arena, STR("gone"), &(struct remove_options){0},
                                   &removed, &err));
    put(&l, "replaced", STR("by this"));
    CHECK_OK(torrents_collect(l.torrents, &gone, &err));
    CHECK_INT(gone, 2);
    CHECK_INT(l.forgotten, 2);
    CHECK_OK(torrents_list(l.torrents, &l.arena, STR_EMPTY, 100, &rows, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(rows[0].key, STR("stays:%/x"));
    CHECK_STR(rows[0].version, STR("null"));
    lab_close(&l);
}

/* A storage that cannot be asked says nothing about its objects. */
TEST(torrents, the_collector_keeps_what_it_cannot_look_at)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct storage *storage;
    size_t gone;

    lab_open(&l, 0);
    put(&l, "key", STR("bytes"));
    CHECK_OK(ask(&l, "key", "1", &answer, &err));
    buf_release(&answer.file);
    storage = l.storage;
    l.storage = NULL;
    CHECK_OK(torrents_collect(l.torrents, &gone, &err));
    CHECK_INT(gone, 0);
    l.storage = storage;
    CHECK_INT(count_rows(&l), 1);
    lab_close(&l);
}

TEST(torrents, pages_go_on_behind_a_position)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct torrent_row *rows;
    size_t count, seen = 0;
    struct str after = STR_EMPTY;
    char key[8];

    lab_open(&l, 0);
    for (int i = 0; i < 7; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        put(&l, key, STR("bytes"));
        CHECK_OK(ask(&l, key, "1", &answer, &err));
        buf_release(&answer.file);
    }
    do {
        CHECK_OK(torrents_list(l.torrents, &l.arena, after, 3, &rows, &count, &err));
        for (size_t i = 0; i < count; i++, seen++) {
            snprintf(key, sizeof(key), "k%zu", seen);
            CHECK_STR(rows[i].key, str_z(key));
        }
        after = count ? rows[count - 1].position : STR_EMPTY;
    } while (count == 3);
    CHECK_INT(seen, 7);
    lab_close(&l);
}

/* --- large ones --- */

static struct worker *start_worker(struct lab *l)
{
    struct err err = {0};
    struct task_handler handler = {TORRENT_TASK_TYPE, torrents_handle, l->torrents};
    struct queue_weight queue = {TORRENT_QUEUE, TORRENT_QUEUE_WEIGHT};
    struct worker_options o = {.queue = l->queue,
                               .queues = &queue,
                               .queue_count = 1,
                               .handlers = &handler,
                               .handler_count = 1,
                               .threads = 2};
    struct worker *w;

    CHECK_OK(worker_start(&w, &o, &err));
    return w;
}

TEST(torrents, a_large_object_is_hashed_by_a_task_while_who_asks_is_told_to_come_back)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct torrent_row *rows;
    size_t count;
    int code;

    lab_open(&l, 4);
    put(&l, "key", STR("large"));
    for (int i = 0; i < 3; i++) {
        CHECK_ERR(ask(&l, "key", "1", &answer, &err), S3_SLOW_DOWN);
        buf_release(&answer.file);
    }
    CHECK(strstr(err.text, "0 of 5 bytes"));
    CHECK_OK(torrents_list(l.torrents, &l.arena, STR_EMPTY, 10, &rows, &count, &err));
    CHECK_INT(count, 1);
    CHECK(!rows[0].ready && rows[0].done == 0);
    struct worker *w = start_worker(&l);
    while ((code = ask(&l, "key", "1", &answer, &err)) == S3_SLOW_DOWN)
        buf_release(&answer.file);
    CHECK_INT(code, 0);
    buf_release(&answer.file);
    worker_stop(w);
    lab_close(&l);
}

TEST(torrents, a_task_of_an_object_that_was_replaced_leaves_nothing_behind)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct queue_stats *stats;
    size_t count;

    lab_open(&l, 4);
    put(&l, "key", STR("large"));
    CHECK_ERR(ask(&l, "key", "1", &answer, &err), S3_SLOW_DOWN);
    put(&l, "key", STR("other"));
    struct worker *w = start_worker(&l);
    uint64_t deadline = clock_mono_ms() + 50000;
    do {
        CHECK_OK(queue_list(l.queue, &l.arena, &stats, &count, &err));
        CHECK(clock_mono_ms() < deadline);
    } while (count == 0 || stats[0].processed == 0);
    worker_stop(w);
    CHECK_INT(stats[0].failed, 0);
    CHECK_INT(count_rows(&l), 0);
    lab_close(&l);
}

TEST(torrents, removing_one_that_waits_takes_its_task_away)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer answer;
    struct torrent_row *rows;
    struct task_info *tasks;
    size_t count;

    lab_open(&l, 4);
    put(&l, "key", STR("large"));
    CHECK_ERR(ask(&l, "key", "1", &answer, &err), S3_SLOW_DOWN);
    CHECK_OK(torrents_list(l.torrents, &l.arena, STR_EMPTY, 10, &rows, &count, &err));
    CHECK_OK(torrents_remove(l.torrents, &l.arena, &rows[0], &err));
    CHECK_INT(count_rows(&l), 0);
    struct queue_page page = {.queue = STR(TORRENT_QUEUE), .state = TASK_PENDING, .limit = 10};
    CHECK_OK(queue_tasks(l.queue, &l.arena, &page, &tasks, &count, &err));
    CHECK_INT(count, 0);
    lab_close(&l);
}

/* --- many at once --- */

struct asker {
    struct lab *l;
    struct thread thread;
    struct arena arena;
    struct torrent_answer answer;
    int code;
};

static void ask_at_once(void *ctx)
{
    static const struct object_conditions none;
    struct asker *a = ctx;
    struct bucket *b = a->l->bucket;
    struct get_result got = {0};
    struct err err = {0};

    a->code = b->ops->head(b, &a->arena, STR("key"), STR_EMPTY, &none, &got, &err);
    got.info.key = STR("key");
    struct torrent_ask question = {.bucket = b, .info = &got.info};
    if (a->code == 0)
        a->code = torrents_write(a->l->torrents, &a->arena, &question, &a->answer, &err);
}

TEST(torrents, many_who_ask_at_once_get_the_same)
{
    enum { ASKERS = 8 };
    struct lab l;
    struct err err = {0};
    struct asker askers[ASKERS] = {0};
    struct buf body = {0};

    lab_open(&l, 0);
    for (int i = 0; i < 100000; i++)
        buf_append_z(&body, "0123456789");
    put(&l, "key", buf_str(&body));
    for (int i = 0; i < ASKERS; i++) {
        askers[i].l = &l;
        CHECK_OK(thread_start(&askers[i].thread, "asker", 0, ask_at_once, &askers[i], &err));
    }
    for (int i = 0; i < ASKERS; i++) {
        thread_join(&askers[i].thread);
        CHECK_INT(askers[i].code, 0);
        CHECK_STR(buf_str(&askers[i].answer.file), buf_str(&askers[0].answer.file));
    }
    for (int i = 0; i < ASKERS; i++) {
        buf_release(&askers[i].answer.file);
        arena_release(&askers[i].arena);
    }
    CHECK_INT(count_rows(&l), 1);
    buf_release(&body);
    lab_close(&l);
}

/* O5, by the store itself. */
TEST(torrents, one_that_the_tracker_lost_is_told_again_unless_an_operator_took_it_off)
{
    struct lab l;
    struct err err = {0};
    struct torrent_answer out;
    struct scrape_entry e;
    uint8_t hash[SHA1_LEN];

    lab_open(&l, 0);
    l.torrents->o.track = NULL;
    struct cache *tracker = l.torrents->cache;
    put(&l, "a", STR("some bytes"));
    CHECK_OK(ask(&l, "a", "1", &out, &err));
    CHECK(hex_parse(out.v1, hash, sizeof(hash)));
    buf_release(&out.file);
    CHECK_OK(cache_remove_torrent(tracker, hash, &err));
    CHECK_OK(ask(&l, "a", "1", &out, &err));
    buf_release(&out.file);
    CHECK_OK(cache_scrape(tracker, hash, 1, &e, &err));
    CHECK(e.known);
    CHECK_OK(cache_withdraw_torrent(tracker, hash, &err));
    CHECK_ERR(ask(&l, "a", "1", &out, &err), S3_ACCESS_DENIED);
    buf_release(&out.file);
    CHECK_OK(cache_scrape(tracker, hash, 1, &e, &err));
    CHECK(!e.known);
    lab_close(&l);
}
