/* Shards of a bucket in one folder, and rows that move between them (local_adopt.h). */
#include "object/local/local_adopt.h"

#include "unit/object/local_lab.h"

#include <stdio.h>

struct shard_lab {
    struct local_lab l;
    struct arena a;
    struct bucket *whole; /* the logical bucket */
    struct bucket *shard;
};

static struct bucket *open_one(struct local_lab *l, const char *name)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(local_open_bucket(&b, l->lab.storage, STR_EMPTY, str_z(name), &err));
    return b;
}

/* Makes a bucket and a shard of it, under names with this letter. */
static void begin(struct shard_lab *lab, char letter)
{
    char whole[] = "whole-?", shard[] = "shard-?";
    struct err err = {0};

    whole[sizeof(whole) - 2] = shard[sizeof(shard) - 2] = letter;
    lab->whole = lab_bucket(lab->l.lab.storage, whole);
    CHECK_OK(local_make_shard(lab->whole, str_z(shard), &err));
    lab->shard = open_one(&lab->l, shard);
}

static void end(struct shard_lab *lab)
{
    lab->whole->ops->unref(lab->whole);
    lab->shard->ops->unref(lab->shard);
    local_lab_expect_whole(&lab->l);
}

static void open_lab(struct shard_lab *lab)
{
    *lab = (struct shard_lab){.a = ARENA_INIT(0)};
    local_lab_open(&lab->l, NULL);
}

static void close_lab(struct shard_lab *lab)
{
    local_lab_close(&lab->l);
    arena_release(&lab->a);
}

/* Moves what one call moves; "<last key>" and "+" if there are more. */
static void expect_adopt(struct shard_lab *lab, struct bucket *to, struct bucket *from,
                         struct key_window w, size_t limit, const char *want)
{
    struct buf text = BUF_INIT(0);
    struct str last = STR("?");
    bool more = false;
    struct err err = {0};

    CHECK_OK(local_adopt(to, from, w.after, w.upto, limit, &lab->a, &last, &more, &err));
    buf_appendf(&text, STR_FMT "%s", STR_ARG(last), more ? "+" : "");
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
}

TEST(local_adopt, keys_of_the_window_move)
{
    static const struct {
        const char *after, *upto, *want, *stays, *moves;
        size_t limit;
    } rows[] = {
        {"", "", "d", "", "a b c d", 10},    {"a", "c", "c", "a d", "b c", 10},
        {"aa", "cc", "c", "a d", "b c", 10}, {"", "c", "b+", "c d", "a b", 2},
        {"b", "b", "", "a b c d", "", 10},   {"c", "b", "", "a b c d", "", 10},
        {"d", "", "", "a b c d", "", 10},    {"", "a", "a", "b c d", "a", 1},
        {"", "", "+", "a b c d", "", 0},
    };
    struct shard_lab lab;

    open_lab(&lab);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct key_window w = {str_z(rows[i].after), str_z(rows[i].upto)};
        begin(&lab, (char)('a' + i));
        for (const char *key = "a\0b\0c\0d\0"; *key; key += 2)
            lab_put(lab.whole, &lab.a, key, str_z(key));
        expect_adopt(&lab, lab.shard, lab.whole, w, rows[i].limit, rows[i].want);
        lab_expect_list(lab.whole, &lab_everything, false, rows[i].stays);
        lab_expect_list(lab.shard, &lab_everything, false, rows[i].moves);
        end(&lab);
    }
    close_lab(&lab);
}

TEST(local_adopt, a_shard_is_removed_only_when_it_is_empty)
{
    struct shard_lab lab;
    struct err err = {0};

    open_lab(&lab);
    begin(&lab, 'x');
    struct storage *s = lab.l.lab.storage;
    lab_put(lab.shard, &lab.a, "k", STR("v"));
    CHECK_ERR(local_remove_shard(s, STR("shard-x"), &err), ERR_CONFLICT);
    CHECK_ERR(local_remove_shard(s, STR("whole-x"), &err), ERR_INVALID);
    CHECK_ERR(local_remove_shard(s, STR("other"), &err), ERR_NO_BUCKET);
    CHECK_ERR(local_make_shard(lab.whole, STR("shard-x"), &err), ERR_EXISTS);
    expect_adopt(&lab, lab.whole, lab.shard, (struct key_window){0}, 1, "k");
    CHECK_OK(local_remove_shard(s, STR("shard-x"), &err));
    CHECK_ERR(local_remove_shard(s, STR("shard-x"), &err), ERR_NO_BUCKET);
    lab_expect(lab.whole, "k", STR_EMPTY, STR("v"));
    end(&lab);
    close_lab(&lab);
}
