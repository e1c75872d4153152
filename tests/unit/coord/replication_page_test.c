/* Pages, cursors and progress, over both engines (docs/replication.md P3, "Status"). */
#include "unit/coord/replication_lab.h"

#include <stdio.h>

static const char R[] = "u photos main backup";
static const char LIST[] = "migrate_bucket_list_obj", COPY[] = "migrate_obj_copy1";

static struct listed copy(struct repl_lab *l, const char *name, uint64_t bytes)
{
    return (struct listed){.task = {.type = STR("migrate:object:copy"),
                                    .id = arena_fmt(&l->a, "mgr:co:%s", name),
                                    .queue = str_z(COPY)},
                           .bytes = bytes};
}

static struct listed listing(struct repl_lab *l, const char *prefix)
{
    return (struct listed){.task = {.type = STR("migrate:bucket:list_objects"),
                                    .id = arena_fmt(&l->a, "mgr:lo:%s", prefix),
                                    .queue = str_z(LIST)},
                           .listing = true,
                           .prefix = str_z(prefix)};
}

/* Up to the root's listing, which is taken. */
static void begin(struct repl_lab *l, struct task *root)
{
    struct replication_id id = repl_id(l, R);
    struct task t;
    struct err err = {0};

    repl_add(l, R);
    CHECK(repl_take(l, "events1", &t));
    struct listed first = listing(l, "");
    CHECK_OK(replication_list(l->r, &id, &t, &first.task, &err));
    CHECK_ERR(queue_done(l->tasks, &t, &err), ERR_NOT_FOUND); /* it has ended with it */
    CHECK_INT(repl_status(l, R).listings, 1);
    CHECK(!repl_status(l, R).listing_started);
    CHECK(repl_take(l, LIST, root));
}

static int page(struct repl_lab *l, const struct task *t, const char *after, const char *last,
                const struct listed *items, size_t count)
{
    struct err err = {0};
    struct listed_page p = {.id = repl_id(l, R),
                            .task = t,
                            .after = str_z(after),
                            .last = str_z(last),
                            .items = items,
                            .count = count};
    if (str_starts(t->id, STR("mgr:lo:")))
        p.prefix = str_skip(t->id, 7);
    return replication_page(l->r, &p, &err);
}

static void check_cursor(struct repl_lab *l, const char *prefix, const char *want)
{
    struct replication_id id = repl_id(l, R);
    struct str at;
    struct err err = {0};

    CHECK_OK(replication_cursor(l->r, &l->a, &id, str_z(prefix), &at, &err));
    CHECK_STR(at, str_z(want));
}

TEST_FOUR(replication_page, an_empty_bucket_is_done_at_once)
{
    struct repl_lab l;
    struct task root;

    repl_open(&l, f);
    begin(&l, &root);
    CHECK_INT(page(&l, &root, "", "", NULL, 0), 0);
    struct replication_status s = repl_status(&l, R);
    CHECK(s.listing_started && s.init_done_ms && s.listings == 0);
    CHECK(replication_init_done(&s));
    check_reply(l.queue, "EXISTS asynq:{migrate_bucket_list_obj}:t:mgr:lo:", "0");
    repl_close(&l);
}

TEST_FOUR(replication_page, a_page_counts_queues_and_moves_the_cursor)
{
    struct repl_lab l;
    struct task root, sub;

    repl_open(&l, f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10), copy(&l, "b", 5), listing(&l, "d/")};
    CHECK_INT(page(&l, &root, "", "d/", items, 3), 0);
    check_cursor(&l, "", "d/");
    check_reply(l.app, "GET s:main:backup:photos", "\"d/\"");
    check_reply(l.queue, "LLEN asynq:{migrate_obj_copy1}:pending", "2");
    struct replication_status s = repl_status(&l, R);
    CHECK_INT(s.listed, 2);
    CHECK_INT(s.bytes_listed, 15);
    CHECK_INT(s.listings, 2);
    CHECK_INT(page(&l, &root, "", "d/", items, 3), ERR_CONFLICT); /* it was there already */
    CHECK_INT(repl_status(&l, R).listed, 2);
    CHECK_INT(repl_drain(&l, COPY), 2);
    struct listed more[] = {copy(&l, "e", 1)};
    CHECK_INT(page(&l, &root, "d/", "", more, 1), 0);
    check_cursor(&l, "", "");
    CHECK_INT(repl_drain(&l, COPY), 1);
    s = repl_status(&l, R);
    CHECK_INT(s.done, 3);
    CHECK_INT(s.bytes_done, 16);
    CHECK(!s.listing_started && !s.init_done_ms); /* d/ is not listed yet */
    CHECK(repl_take(&l, LIST, &sub));
    struct listed last[] = {copy(&l, "d/x", 4)};
    CHECK_INT(page(&l, &sub, "", "", last, 1), 0);
    s = repl_status(&l, R);
    CHECK(s.listing_started && !s.init_done_ms);
    CHECK_INT(repl_drain(&l, COPY), 1);
    s = repl_status(&l, R);
    CHECK(replication_init_done(&s));
    CHECK_INT(s.bytes_done, 20);
    CHECK_INT(s.bytes_listed, 20);
    repl_close(&l);
}

TEST_FOUR(replication_page, who_lost_the_listing_records_nothing)
{
    struct repl_lab l;
    struct task root, again;
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    CHECK_OK(queue_requeue(l.tasks, &root, &err));
    CHECK(repl_take(&l, LIST, &again));
    struct listed items[] = {copy(&l, "a", 10)};
    CHECK_INT(page(&l, &root, "", "a", items, 1), ERR_CONFLICT);
    check_cursor(&l, "", "");
    CHECK_INT(page(&l, &again, "", "a", items, 1), 0);
    CHECK_INT(page(&l, &again, "a", "", NULL, 0), 0);
    CHECK_INT(page(&l, &again, "", "a", items, 1), ERR_CONFLICT); /* it has ended */
    CHECK_INT(repl_status(&l, R).listed, 1);
    repl_close(&l);
}

TEST_FOUR(replication_page, a_failed_object_is_counted_and_does_not_block_the_rest)
{
    struct repl_lab l;
    struct task root, t;
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10), copy(&l, "b", 5)};
    CHECK_INT(page(&l, &root, "", "", items, 2), 0);
    CHECK(repl_take(&l, COPY, &t));
    CHECK_OK(queue_retry(l.tasks, &t, 1000, true, STR("not now"), &err));
    CHECK_INT(repl_status(&l, R).failed, 0);
    CHECK_OK(queue_run_now(l.tasks, str_z(COPY), t.id, &err));
    CHECK(repl_take(&l, COPY, &t));
    CHECK_OK(queue_archive(l.tasks, &t, STR("never"), &err));
    CHECK_INT(repl_status(&l, R).failed, 1);
    struct str failed = t.id;
    CHECK_INT(repl_drain(&l, COPY), 1);
    struct replication_status s = repl_status(&l, R);
    CHECK(replication_init_done(&s));
    CHECK_INT(s.done, 1);
    CHECK_OK(queue_run_now(l.tasks, str_z(COPY), failed, &err));
    CHECK_INT(repl_status(&l, R).failed, 0);
    CHECK_INT(repl_drain(&l, COPY), 1);
    s = repl_status(&l, R);
    CHECK_INT(s.done, 2);
    CHECK_INT(s.listed, 2);
    CHECK_INT(s.bytes_done, 15);
    repl_close(&l);
}

TEST_FOUR(replication_page, a_copy_that_somebody_deleted_counts_as_failed)
{
    struct repl_lab l;
    struct task root;
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10)};
    CHECK_INT(page(&l, &root, "", "", items, 1), 0);
    CHECK_OK(queue_delete(l.tasks, str_z(COPY), STR("mgr:co:a"), &err));
    struct replication_status s = repl_status(&l, R);
    CHECK_INT(s.failed, 1);
    CHECK(replication_init_done(&s));
    repl_close(&l);
}

/* A worker that died holds nobody up. */
TEST(replication_page, a_copy_whose_worker_died_on_the_last_try_is_counted)
{
    struct four f = {0};
    struct repl_lab l;
    struct task root, t;
    struct err err = {0};
    struct str name = str_z(COPY);
    size_t moved;

    four_open_embedded(&f);
    repl_open(&l, &f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10)};
    items[0].task.retry_max = -1;
    CHECK_INT(page(&l, &root, "", "", items, 1), 0);
    CHECK(repl_take(&l, COPY, &t));
    embedded_shift_clock(l.queue, (QUEUE_LEASE_S + 1) * 1000);
    CHECK_OK(queue_recover(l.tasks, &(struct store_args){&name, 1}, &moved, &err));
    CHECK_INT(moved, 1);
    CHECK_INT(repl_status(&l, R).failed, 1);
    CHECK_ERR(queue_done(l.tasks, &t, &err), ERR_NOT_FOUND);
    CHECK_INT(repl_status(&l, R).done, 0);
    repl_close(&l);
    four_close(&f);
}

TEST_FOUR(replication_page, what_was_listed_twice_is_there_once)
{
    struct repl_lab l;
    struct task root;

    repl_open(&l, f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10), copy(&l, "b", 5)};
    CHECK_INT(page(&l, &root, "", "b", items, 2), 0);
    check_reply(l.app, "DEL s:main:backup:photos", "1"); /* it expired: from the beginning */
    CHECK_INT(page(&l, &root, "", "", items, 2), 0);
    CHECK_INT(repl_status(&l, R).listed, 2);
    CHECK_INT(repl_drain(&l, COPY), 2);
    CHECK_INT(repl_status(&l, R).done, 2);
    repl_close(&l);
}

TEST_FOUR(replication_page, a_cursor_lives_for_eight_hours)
{
    struct repl_lab l;
    struct task root;
    struct reply *reply;
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    CHECK_INT(page(&l, &root, "", "k", NULL, 0), 0);
    CHECK_OK(store_call(l.app, &l.a, &reply, &err, STR("TTL"), STR("s:main:backup:photos")));
    CHECK(reply->integer > 8 * 3600 - 60 && reply->integer <= 8 * 3600);
    repl_close(&l);
}

/* What was written between the two was seen by nobody but the second's listing. */
TEST_FOUR(replication_page, a_replication_made_anew_lists_from_the_beginning)
{
    struct repl_lab l;
    struct replication_id id;
    struct task root, old_copy, first, again;
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    struct listed items[] = {copy(&l, "a", 10), copy(&l, "b", 5)};
    CHECK_INT(page(&l, &root, "", "b", items, 2), 0);
    CHECK(repl_take(&l, COPY, &old_copy));
    repl_remove(&l, R);
    CHECK_INT(page(&l, &root, "b", "c", items, 2), ERR_NOT_FOUND);
    repl_add(&l, R);
    CHECK_INT(page(&l, &root, "b", "c", items, 2), ERR_NOT_FOUND); /* it is another */
    CHECK(repl_take(&l, "events1", &first));
    id = repl_id(&l, R);
    struct listed listing_of_root = listing(&l, "");
    CHECK_OK(replication_list(l.r, &id, &first, &listing_of_root.task, &err));
    CHECK(repl_take(&l, LIST, &again)); /* beside the old one, which still runs */
    check_cursor(&l, "", "");
    again.id = arena_str(&l.a, again.id);
    struct listed_page p = {.id = id, .task = &again, .items = items, .count = 2};
    CHECK_OK(replication_page(l.r, &p, &err));
    struct replication_status s = repl_status(&l, R);
    CHECK_INT(s.listed, 2);
    CHECK_INT(s.listings, 0);
    CHECK_OK(queue_done(l.tasks, &old_copy, &err)); /* had looked at the source before */
    CHECK_OK(queue_done(l.tasks, &root, &err));
    CHECK_INT(repl_status(&l, R).done, 0);
    CHECK_INT(repl_drain(&l, COPY), 2);
    s = repl_status(&l, R);
    CHECK_INT(s.done, 2);
    CHECK(replication_init_done(&s));
    repl_close(&l);
}

TEST_FOUR(replication_page, cleaning_takes_the_cursors_of_one_replication)
{
    struct repl_lab l;
    struct replication_id id;
    struct err err = {0};
    uint64_t at = 0;

    repl_open(&l, f);
    check_reply(l.app, "SET s:main:backup:photos k", "OK");
    check_reply(l.app, "SET s:main:backup:photos:d/ k", "OK");
    check_reply(l.app, "SET s:main:backup:photos:d%3A/e/ k", "OK");
    check_reply(l.app, "SET s:main:backup:photos:archive k", "OK");
    check_reply(l.app, "SET s:main:backup:photos:archive:d/ k", "OK");
    check_reply(l.app, "SET s:main:backup:photos2 k", "OK");
    check_reply(l.app, "HSET photos:x main 1", "1");
    id = repl_id(&l, R);
    do {
        CHECK_OK(replication_clean(l.r, &id, &at, &err));
    } while (at);
    check_reply(l.app, "DBSIZE", "4");
    id = repl_id(&l, "u photos main backup archive");
    do {
        CHECK_OK(replication_clean(l.r, &id, &at, &err));
    } while (at);
    check_reply(l.app, "EXISTS s:main:backup:photos2 photos:x", "2");
    check_reply(l.app, "DBSIZE", "2");
    repl_close(&l);
}

/* The clock of the store is set back for each round, so that most rounds begin at the same time. */
TEST(replication_page, rounds_that_begin_at_one_time_differ)
{
    struct repl_lab l;
    struct task root,
        resync = {.type = STR("bucket:create"), .id = STR("cb:again"), .queue = STR("events1")};
    struct four f = {0};
    struct err err = {0};

    four_open_embedded(&f);
    repl_open(&l, &f);
    begin(&l, &root);
    struct replication_id id = repl_id(&l, R);
    int64_t start_ms = clock_wall_ms();
    for (int i = 0; i < 50; i++) {
        repl_record(&l, "main", "photos", "a");
        for (int s = 0; s < STORE_DATABASES; s++)
            embedded_shift_clock(f.stores[s], start_ms - clock_wall_ms());
        CHECK_OK(replication_resync(l.r, &id, &resync, false, &err));
        repl_record(&l, "main", "photos", "a");
        CHECK_INT(repl_status(&l, R).events, 1);
    }
    repl_close(&l);
    four_close(&f);
}

TEST_FOUR(replication_page, a_resync_counts_and_lists_anew)
{
    struct repl_lab l;
    struct replication_id id;
    struct task root, slow, first, again,
        resync = {.type = STR("bucket:create"), .id = STR("cb:again"), .queue = STR("events1")};
    struct err err = {0};

    repl_open(&l, f);
    begin(&l, &root);
    id = repl_id(&l, R);
    struct listed items[] = {copy(&l, "a", 10), copy(&l, "b", 5)};
    CHECK_INT(page(&l, &root, "", "b", items, 2), 0);
    CHECK(repl_take(&l, COPY, &slow));
    repl_record(&l, "main", "photos", "a");
    CHECK_OK(replication_resync(l.r, &id, &resync, false, &err));
    struct replication_status s = repl_status(&l, R);
    CHECK(s.resynced_ms > 0 && s.listings == 1 && s.listed == 0 && !replication_init_done(&s));
    CHECK_INT(s.events, 0);
    CHECK_INT(page(&l, &root, "b", "c", NULL, 0), ERR_NOT_FOUND);
    /* the event of before counts for nobody, unless a change since then is left to it */
    repl_record(&l, "main", "photos", "b");
    CHECK_INT(repl_drain(&l, "events1"), 3);
    CHECK_INT(repl_status(&l, R).events, 1);
    CHECK_INT(repl_status(&l, R).events_done, 1);
    repl_record(&l, "main", "photos", "a");
    CHECK_OK(replication_resync(l.r, &id, &resync, false, &err));
    repl_record(&l, "main", "photos", "a");
    CHECK_INT(repl_status(&l, R).events, 1);
    CHECK_INT(repl_drain(&l, "events1"), 2);
    CHECK_INT(repl_status(&l, R).events_done, 1);
    CHECK_OK(replication_resync(l.r, &id, &resync, false, &err));
    CHECK(repl_take(&l, "events1", &first));
    struct listed of_root = listing(&l, "");
    CHECK_OK(replication_list(l.r, &id, &first, &of_root.task, &err));
    CHECK(repl_take(&l, LIST, &again));
    check_cursor(&l, "", "");
    struct listed_page p = {.id = id, .task = &again, .items = items, .count = 2};
    CHECK_OK(replication_page(l.r, &p, &err));
    CHECK_OK(queue_done(l.tasks, &slow, &err));
    CHECK_INT(repl_status(&l, R).done, 0);
    CHECK_INT(repl_drain(&l, COPY), 2);
    s = repl_status(&l, R);
    CHECK(replication_init_done(&s));
    CHECK_INT(s.listed, 2);
    CHECK_INT(s.bytes_done, 15);
    id.to = STR("cold");
    CHECK_ERR(replication_resync(l.r, &id, &resync, false, &err), ERR_NOT_FOUND);
    id = repl_id(&l, R);
    CHECK_OK(replication_archive(l.r, &id, &err));
    CHECK_ERR(replication_resync(l.r, &id, &resync, false, &err), ERR_CONFLICT);
    repl_close(&l);
}
