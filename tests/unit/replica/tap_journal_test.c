/* The file of intents: an entry is there whole or not at all, whenever a process ended. */
#include "replica/tap/tap_journal.h"
#include "os/thread.h"
#include "unit/replica/tap_lab.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SLOTS = 1024, HEAD_BYTES = 4096, SLOTS_AT = HEAD_BYTES + 4 * SLOTS, SLOT_BYTES = 2048 };

static struct journal *open_journal(const char *boot, bool *kept)
{
    struct journal *j = NULL;
    struct err err = {0};

    CHECK_OK(journal_open(&j, tap_lab_journal(), str_z(boot), kept, &err));
    journal_begin(j, str_z(boot));
    return j;
}

static struct journal_entry entry(const char *key)
{
    return (struct journal_entry){STR("far"), STR("box"), str_z(key), 7};
}

struct seen {
    size_t count;
    struct journal_entry last;
    int slot;
};

static void see(void *ctx, int slot, const struct journal_entry *e)
{
    struct seen *s = ctx;

    s->count++;
    s->last = *e;
    s->slot = slot;
}

static struct seen look(struct journal *j)
{
    struct seen s = {0};

    journal_each(j, see, &s);
    return s;
}

TEST(journal, entries_outlive_who_wrote_them)
{
    bool kept = true;
    struct journal *j = open_journal("first", &kept);
    struct journal_entry e = entry("k");

    CHECK(!kept);
    int gone = journal_add(j, &(struct journal_entry){STR(""), STR(""), STR(""), 0});
    CHECK(journal_add(j, &e) >= 0);
    journal_remove(j, gone);
    journal_close(j);
    j = open_journal("first", &kept);
    CHECK(kept);
    struct seen s = look(j);
    CHECK_INT(s.count, 1);
    CHECK_STR(s.last.storage, STR("far"));
    CHECK_STR(s.last.bucket, STR("box"));
    CHECK_STR(s.last.key, STR("k"));
    CHECK_INT(s.last.changes, 7);
    journal_remove(j, s.slot);
    CHECK_INT(look(j).count, 0);
    journal_close(j);
}

TEST(journal, of_another_start_of_the_machine_is_empty)
{
    bool kept = false;
    struct journal *j = open_journal("first", &kept);
    struct journal_entry e = entry("k");

    CHECK(journal_add(j, &e) >= 0);
    journal_close(j);
    j = open_journal("second", &kept);
    CHECK(!kept);
    CHECK_INT(look(j).count, 0);
    journal_close(j);
    j = open_journal("second", &kept);
    CHECK(kept);
    journal_close(j);
}

/* A start that found out that entries are lost, and was killed before it did something about it,
 * finds out again. */
TEST(journal, that_was_not_begun_is_not_kept)
{
    bool kept = false;
    struct journal *j = NULL;
    struct err err = {0};

    journal_close(open_journal("first", &kept));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(journal_open(&j, tap_lab_journal(), STR("second"), &kept, &err));
        CHECK(!kept);
        journal_close(j);
    }
    CHECK_OK(journal_open(&j, tap_lab_journal(), STR("first"), &kept, &err));
    CHECK(!kept);
    journal_close(j);
}

TEST(journal, has_room_for_some_and_says_so)
{
    static char longest[SLOT_BYTES];
    bool kept;
    struct journal *j = open_journal("first", &kept);
    struct journal_entry e = entry("k");
    int last = -1;

    memset(longest, 'x', sizeof(longest) - 1);
    for (int i = 0; i < SLOTS; i++)
        CHECK((last = journal_add(j, &e)) >= 0);
    CHECK_INT(journal_add(j, &e), -1);
    journal_remove(j, last);
    CHECK_INT(journal_add(j, &e), last);
    journal_remove(j, last);
    e = entry(longest);
    CHECK_INT(journal_add(j, &e), -1);
    e.key =
        str_n(longest, SLOT_BYTES - 12 - 6); /* all the room that is left beside "far" and "box" */
    CHECK_INT(journal_add(j, &e), last);
    journal_read(j, last, &e);
    CHECK_INT(e.key.len, SLOT_BYTES - 12 - 6);
    CHECK_INT(look(j).count, SLOTS);
    journal_close(j);
    j = open_journal("first", &kept);
    CHECK(kept);
    CHECK_INT(journal_add(j, &e), -1);
    journal_close(j);
}

static void damage(off_t at, const void *bytes, size_t len)
{
    int fd = open(tap_lab_journal(), O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_INT(pwrite(fd, bytes, len, at), (ssize_t)len);
    close(fd);
}

/* In these cases the marks say which buckets to copy anew. */
TEST(journal, that_is_damaged_is_begun_anew)
{
    const struct {
        off_t at;
        const char *bytes;
        size_t len;
    } all[] = {
        {0, "W", 1},                                   /* magic */
        {16, "F", 1},                                  /* boot */
        {HEAD_BYTES, "\x02", 1},                       /* state */
        {SLOTS_AT + 4, "\xff\xff\xff\xff\xff\xff", 6}, /* lengths */
        {SLOTS_AT + 8, "\xef\x07", 2},                 /* of the key: one past the slot */
        {HEAD_BYTES + 5 * 4, "\xff\xff\xff\xff", 4},   /* a slot that was free */
    };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        bool kept = false;
        struct journal *j = open_journal("first", &kept);
        struct journal_entry e = entry("k");
        CHECK_INT(journal_add(j, &e), 0);
        journal_close(j);
        damage(all[i].at, all[i].bytes, all[i].len);
        j = open_journal("first", &kept);
        CHECK(!kept);
        CHECK_INT(look(j).count, 0);
        journal_close(j);
        CHECK(unlink(tap_lab_journal()) == 0);
    }
}

TEST(journal, that_was_cut_off_is_begun_anew)
{
    bool kept = false;
    struct journal_entry e = entry("k");

    journal_close(open_journal("first", &kept));
    CHECK(truncate(tap_lab_journal(), SLOTS_AT) == 0);
    struct journal *j = open_journal("first", &kept);
    CHECK(!kept);
    for (int i = 0; i < SLOTS; i++)
        CHECK(journal_add(j, &e) >= 0);
    journal_close(j);
}

/* --- many at once --- */

enum { THREADS = 8, ROUNDS = 20000 };

struct user {
    struct thread thread;
    struct journal *j;
    unsigned index;
};

static void use(void *ctx)
{
    struct user *u = ctx;
    struct journal_entry out;
    char key[600];
    struct err err = {0};

    (void)err;
    for (unsigned i = 0; i < ROUNDS; i++) {
        memset(key, 'a' + (int)(u->index + i) % 26, sizeof(key));
        struct journal_entry e = {STR("far"), STR("box"), str_n(key, 1 + (u->index * 7 + i) % 599),
                                  i};
        int slot = journal_add(u->j, &e);
        CHECK(slot >= 0);
        journal_read(u->j, slot, &out);
        CHECK(out.changes == i && str_eq(out.key, e.key) && str_eq(out.bucket, e.bucket));
        journal_remove(u->j, slot);
    }
}

/* Each is of one letter. */
static void check_one(void *ctx, int slot, const struct journal_entry *e)
{
    (void)slot;
    for (size_t i = 1; i < e->key.len; i++)
        CHECK(e->key.p[i] == e->key.p[0]);
    ++*(size_t *)ctx;
}

TEST(journal, entries_of_many_threads_are_whole_to_who_looks)
{
    bool kept;
    struct journal *j = open_journal("first", &kept);
    struct user all[THREADS];
    size_t seen = 0;
    struct err err = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = (struct user){.j = j, .index = i};
        CHECK_OK(thread_start(&all[i].thread, "use", 0, use, &all[i], &err));
    }
    for (int i = 0; i < 200; i++)
        journal_each(j, check_one, &seen);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&all[i].thread);
    CHECK_INT(look(j).count, 0);
    journal_close(j);
}
