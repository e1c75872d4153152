/* Maps of sharded buckets: asking and editing. */
#include "unit/shard/map_lab.h"
#include "base/ids.h"
#include "unit/test.h"

#include <stdio.h>

static void expect_sound(const struct shard_map *m)
{
    struct err err = {0};

    CHECK_OK(map_check(m, &err));
}

static void expect_broken(struct shard_map *m)
{
    struct err err = {0};

    CHECK_ERR(map_check(m, &err), ERR_CORRUPT);
    CHECK(err.text[0]);
    map_unref(m);
}

/* "place:after|place:after|…" of all segments. */
static void expect_segments(const struct shard_map *m, const char *want)
{
    struct buf got = {0};

    for (size_t i = 0; i < m->segment_count; i++)
        buf_appendf(&got, "%s%u:" STR_FMT, i ? "|" : "", map_place_at(m, i)->number,
                    STR_ARG(m->segments[i].after));
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
}

/* "(after,upto](…" of all unclean windows. */
static void expect_unclean(const struct shard_map *m, uint32_t number, const char *want)
{
    const struct shard_place *p = map_place(m, number);
    struct buf got = {0};

    for (size_t i = 0; i < p->unclean_count; i++)
        buf_appendf(&got, "(" STR_FMT "," STR_FMT "]", STR_ARG(p->unclean[i].after),
                    STR_ARG(p->unclean[i].upto));
    CHECK_STR(got.len ? buf_str(&got) : STR(""), str_z(want));
    buf_release(&got);
}

/* A draft with the places 0 to `last`, of which place 0 owns all. */
static struct shard_map *draft_with(uint32_t last)
{
    struct shard_map *m = map_lab_first();

    map_lab_next(&m);
    for (uint32_t number = 1; number <= last; number++)
        map_lab_add(m, number);
    return m;
}

TEST(shard_map, windows_are_open_below_and_closed_above)
{
    CHECK(!window_has(WINDOW("b", "d"), STR("b")));
    CHECK(window_has(WINDOW("b", "d"), str_n("b\0", 2)));
    CHECK(window_has(WINDOW("b", "d"), STR("c")));
    CHECK(window_has(WINDOW("b", "d"), STR("d")));
    CHECK(!window_has(WINDOW("b", "d"), str_n("d\0", 2)));
    CHECK(window_has(WINDOW("", "d"), str_n("\0", 1)));
    CHECK(window_has(WINDOW("b", ""), STR("\xff\xff")));
    CHECK(window_is_empty(WINDOW("b", "b")));
    CHECK(window_is_empty(WINDOW("c", "b")));
    CHECK(!window_is_empty(WINDOW("c", "")));
    CHECK(!window_is_empty(WINDOW("", "")));
    CHECK(window_overlaps(WINDOW("a", "c"), WINDOW("b", "d")));
    CHECK(!window_overlaps(WINDOW("a", "c"), WINDOW("c", "d")));
    CHECK(!window_overlaps(WINDOW("c", "d"), WINDOW("a", "c")));
    CHECK(window_overlaps(WINDOW("c", ""), WINDOW("a", "")));
    CHECK(!window_overlaps(WINDOW("c", "c"), WINDOW("", "")));
    CHECK(window_compare_upto(STR(""), STR("z")) > 0);
    CHECK(window_compare_upto(STR("z"), STR("")) < 0);
    CHECK_INT(window_compare_upto(STR(""), STR("")), 0);
    CHECK(window_compare_upto(STR("a"), STR("b")) < 0);
}

TEST(shard_map, the_first_map_has_all_keys_on_the_bucket_itself)
{
    struct shard_map *m = map_lab_first();

    expect_sound(m);
    CHECK_INT(m->number, 1000);
    CHECK_INT(m->place_count, 1);
    CHECK_STR(map_place(m, 0)->bucket, LAB_BUCKET);
    expect_segments(m, "0:");
    CHECK_INT(map_lab_owner(m, STR("any key")), 0);
    CHECK(map_is_on(m, WINDOW("", ""), 0));
    CHECK(!map_closes(m, STR("any key")));
    CHECK(!map_place(m, 1));
    map_unref(m);
    map_unref(NULL);
}

TEST(shard_map, drafts_share_nothing_with_the_map_that_they_follow)
{
    struct shard_map *first = map_lab_first(), *next = map_draft(first);

    map_lab_add(next, 1);
    map_give(next, WINDOW("m", ""), 1);
    expect_segments(first, "0:");
    CHECK(!str_eq(first->by, next->by));
    CHECK_INT(next->number, first->number + 1);
    map_unref(first);
    expect_sound(next);
    expect_segments(next, "0:|1:m");
    CHECK_STR(next->owner, STR("owner"));
    map_unref(next);
}

TEST(shard_map, boundaries_belong_to_the_segment_below)
{
    struct shard_map *m = draft_with(2);

    map_give(m, WINDOW("m", "t"), 1);
    map_give(m, WINDOW("t", ""), 2);
    expect_segments(m, "0:|1:m|2:t");
    CHECK_INT(map_lab_owner(m, STR("a")), 0);
    CHECK_INT(map_lab_owner(m, STR("m")), 0);
    CHECK_INT(map_lab_owner(m, str_n("m\0", 2)), 1);
    CHECK_INT(map_lab_owner(m, STR("t")), 1);
    CHECK_INT(map_lab_owner(m, STR("t ")), 2);
    CHECK_INT(map_lab_owner(m, STR("\xff")), 2);
    CHECK_INT(map_segment_after(m, STR("")), 0);
    CHECK_INT(map_segment_after(m, STR("l")), 0);
    CHECK_INT(map_segment_after(m, STR("m")), 1);
    CHECK_INT(map_segment_after(m, STR("t")), 2);
    CHECK_INT(map_segment_after(m, STR("zz")), 2);
    CHECK_STR(map_window(m, 1).after, STR("m"));
    CHECK_STR(map_window(m, 1).upto, STR("t"));
    CHECK_INT(map_window(m, 2).upto.len, 0);
    CHECK(map_is_on(m, WINDOW("m", "t"), 1));
    CHECK(map_is_on(m, WINDOW("n", "o"), 1));
    CHECK(!map_is_on(m, WINDOW("l", "t"), 1));
    CHECK(!map_is_on(m, WINDOW("m", "u"), 1));
    CHECK(!map_is_on(m, WINDOW("", ""), 1));
    CHECK(map_is_on(m, WINDOW("t", ""), 2));
    CHECK(!map_is_on(m, WINDOW("s", ""), 2));
    expect_sound(m);
    map_unref(m);
}

TEST(shard_map, windows_that_are_given_cut_and_join_segments)
{
    struct shard_map *m = draft_with(2);

    map_give(m, WINDOW("c", "f"), 1);
    expect_segments(m, "0:|1:c|0:f");
    map_give(m, WINDOW("f", "h"), 1); /* joins at the end */
    expect_segments(m, "0:|1:c|0:h");
    map_give(m, WINDOW("b", "c"), 1); /* joins at the beginning */
    expect_segments(m, "0:|1:b|0:h");
    map_give(m, WINDOW("d", "e"), 2); /* inside */
    expect_segments(m, "0:|1:b|2:d|1:e|0:h");
    map_give(m, WINDOW("d", "e"), 1); /* the hole closes again */
    expect_segments(m, "0:|1:b|0:h");
    map_give(m, WINDOW("x", "x"), 2); /* nothing */
    expect_segments(m, "0:|1:b|0:h");
    map_give(m, WINDOW("a", "z"), 2); /* over everything between */
    expect_segments(m, "0:|2:a|0:z");
    map_give(m, WINDOW("", "a"), 2);
    expect_segments(m, "2:|0:z");
    map_give(m, WINDOW("z", ""), 2);
    expect_segments(m, "2:");
    map_give(m, WINDOW("", ""), 0);
    expect_segments(m, "0:");
    expect_sound(m);
    map_unref(m);
}

TEST(shard_map, giving_agrees_with_a_list_of_owners)
{
    enum { KEYS = 26 * 2, PLACES = 5, ROUNDS = 3000 };
    struct shard_map *m = draft_with(PLACES - 1);
    uint32_t owners[KEYS] = {0};
    char bounds[KEYS][3]; /* the key i, and the boundary above it: "a", "a~", "b", … */

    for (int i = 0; i < KEYS; i++)
        snprintf(bounds[i], sizeof(bounds[i]), "%c%s", 'a' + i / 2, i % 2 ? "~" : "");
    for (int round = 0; round < ROUNDS; round++) {
        int from = (int)random_below(KEYS + 1) - 1, to = (int)random_below(KEYS);
        uint32_t place = (uint32_t)random_below(PLACES);
        bool open = random_below(8) == 0;
        struct shard_window w = {from < 0 ? STR("") : str_z(bounds[from]),
                                 open ? STR("") : str_z(bounds[to])};
        map_give(m, &w, place);
        for (int i = from + 1; i <= (open ? KEYS - 1 : to); i++)
            owners[i] = place;
        for (int i = 0; i < KEYS; i++)
            CHECK_INT(map_lab_owner(m, str_z(bounds[i])), owners[i]);
        expect_sound(m);
        if (round % 100 == 0)
            map_lab_next(&m);
    }
    map_unref(m);
}

TEST(shard_map, ten_thousand_segments_are_found)
{
    enum { MANY = 10000 };
    struct shard_map *m = draft_with(1);
    struct err err = {0};
    struct buf text = {0};
    struct shard_map *read = NULL;
    char after[16], upto[16];

    for (int i = 0; i < MANY / 2; i++) {
        snprintf(after, sizeof(after), "%08d", 2 * i);
        snprintf(upto, sizeof(upto), "%08d", 2 * i + 1);
        map_give(m, &(struct shard_window){str_z(after), str_z(upto)}, 1);
    }
    CHECK_INT(m->segment_count, MANY + 1);
    map_write(m, &text);
    CHECK_OK(map_parse(&read, buf_str(&text), &err));
    for (int i = 0; i < MANY; i++) {
        snprintf(after, sizeof(after), "%08dx", i);
        CHECK_INT(map_lab_owner(read, str_z(after)), i % 2 == 0);
        CHECK_INT(map_segment_of(read, str_z(after)), i + 1);
    }
    map_unref(read);
    map_unref(m);
    buf_release(&text);
}

TEST(shard_map, places_are_added_and_removed)
{
    struct shard_map *m = draft_with(3);

    map_give(m, WINDOW("m", "t"), 2);
    map_give(m, WINDOW("t", ""), 3);
    map_remove_place(m, 1);
    expect_sound(m);
    expect_segments(m, "0:|2:m|3:t");
    CHECK(!map_place(m, 1));
    CHECK_INT(map_place(m, 3)->number, 3);
    map_give(m, WINDOW("t", ""), 0);
    map_remove_place(m, 3);
    CHECK_INT(m->last_number, 3); /* no place has this number again */
    map_lab_add(m, 4);
    map_lab_add(m, 90); /* numbers may be skipped */
    expect_sound(m);
    map_unref(m);
}

TEST(shard_map, unclean_windows_join_and_are_cut)
{
    struct shard_map *m = draft_with(1);

    map_set_unclean(m, 1, WINDOW("f", "h"));
    map_set_unclean(m, 1, WINDOW("b", "c"));
    map_set_unclean(m, 1, WINDOW("x", "x"));
    expect_unclean(m, 1, "(b,c](f,h]");
    map_set_unclean(m, 1, WINDOW("c", "d")); /* touches */
    expect_unclean(m, 1, "(b,d](f,h]");
    map_set_unclean(m, 1, WINDOW("", "a"));
    expect_unclean(m, 1, "(,a](b,d](f,h]");
    map_set_unclean(m, 1, WINDOW("c", "g")); /* over a gap */
    expect_unclean(m, 1, "(,a](b,h]");
    map_set_unclean(m, 1, WINDOW("k", ""));
    expect_unclean(m, 1, "(,a](b,h](k,]");
    CHECK(map_is_clean(m, WINDOW("a", "b"), 1));
    CHECK(!map_is_clean(m, WINDOW("a", "b "), 1));
    CHECK(!map_is_clean(m, WINDOW("zz", ""), 1));
    CHECK(map_is_clean(m, WINDOW("", ""), 0));
    expect_sound(m);
    map_lab_next(&m);
    expect_unclean(m, 1, "(,a](b,h](k,]");
    map_set_clean(m, 1, WINDOW("c", "d")); /* inside */
    expect_unclean(m, 1, "(,a](b,c](d,h](k,]");
    map_set_clean(m, 1, WINDOW("g", "m")); /* over an end and a beginning */
    expect_unclean(m, 1, "(,a](b,c](d,g](m,]");
    map_set_clean(m, 1, WINDOW("c", "d")); /* clean already */
    expect_unclean(m, 1, "(,a](b,c](d,g](m,]");
    expect_sound(m);
    map_set_clean(m, 1, WINDOW("", ""));
    expect_unclean(m, 1, "");
    map_set_unclean(m, 1, WINDOW("b", "c"));
    map_set_unclean(m, 1, WINDOW("", "")); /* swallows all */
    expect_unclean(m, 1, "(,]");
    map_unref(m);
}

TEST(shard_map, a_place_is_clean_where_it_is_given_keys)
{
    struct shard_map *m = draft_with(1);

    map_set_unclean(m, 1, WINDOW("m", ""));
    map_give(m, WINDOW("m", "p"), 1);
    expect_unclean(m, 1, "(p,]");
    expect_sound(m);
    map_unref(m);
}

TEST(shard_map, too_many_unclean_windows_become_fewer_and_larger_ones)
{
    struct shard_map *m = draft_with(1);
    char after[16], upto[16];

    map_give(m, WINDOW("00000000", "00000001"), 1);
    for (int i = 0; i < SHARD_UNCLEAN_MAX + 100; i++) {
        snprintf(after, sizeof(after), "%08d", i * 4 + 1);
        snprintf(upto, sizeof(upto), "%08d", i * 4 + 2);
        map_set_unclean(m, 1, &(struct shard_window){str_z(after), str_z(upto)});
        CHECK(!map_is_clean(m, &(struct shard_window){str_z(after), str_z(upto)}, 1));
    }
    CHECK_INT(map_place(m, 1)->unclean_count, SHARD_UNCLEAN_MAX);
    CHECK(map_is_clean(m, WINDOW("00000000", "00000001"), 1));
    expect_sound(m);
    map_unref(m);
}

TEST(shard_map, closing_covers_the_window_and_only_objects)
{
    struct shard_map *m = draft_with(1);

    map_close(m, SHARD_CLOSED_ADOPT, WINDOW("b", "d"));
    expect_sound(m);
    CHECK(!map_closes(m, STR("b")));
    CHECK(map_closes(m, STR("d")));
    CHECK(map_closes_window(m, WINDOW("c", "z")));
    CHECK(!map_closes_window(m, WINDOW("d", "z")));
    map_lab_next(&m);
    CHECK(map_closes(m, STR("c")));
    map_open(m);
    expect_sound(m);
    CHECK(!map_closes(m, STR("c")));
    map_close(m, SHARD_CLOSED_DOCUMENTS, NULL);
    expect_sound(m);
    CHECK(!map_closes(m, STR("c")));
    map_open(m);
    map_close(m, SHARD_CLOSED_ALL, NULL);
    expect_sound(m);
    CHECK(map_closes(m, STR("c")));
    CHECK(map_closes_window(m, WINDOW("y", "z")));
    map_unref(m);
}

TEST(shard_map, moves_begin_and_end)
{
    struct shard_map *m = draft_with(1);

    map_begin_move(m, SHARD_SPLIT, 0, 1, WINDOW("m", ""));
    expect_sound(m);
    map_lab_next(&m);
    CHECK(m->move.id.len > 0);
    CHECK_STR(m->move.window.after, STR("m"));
    map_end_move(m);
    expect_sound(m);
    CHECK_INT(m->move.id.len, 0);
    map_unref(m);
}

/* Breaks one rule of a sound draft for each test below. */
#define EXPECT_BROKEN(edit)                                                                        \
    do {                                                                                           \
        struct shard_map *m = draft_with(2);                                                       \
        map_give(m, WINDOW("m", "t"), 1);                                                          \
        map_give(m, WINDOW("t", ""), 2);                                                           \
        map_set_unclean(m, 1, WINDOW("a", "b"));                                                   \
        expect_sound(m);                                                                           \
        edit;                                                                                      \
        expect_broken(m);                                                                          \
    } while (0)

TEST(shard_map, each_broken_rule_is_found)
{
    EXPECT_BROKEN(m->number = 0);
    EXPECT_BROKEN(m->by = STR("short"));
    EXPECT_BROKEN(m->by = STR("0123456789ABCDEF"));
    EXPECT_BROKEN(m->mark = STR("ab18"));
    EXPECT_BROKEN(m->home = STR("elsewhere"));
    EXPECT_BROKEN(m->bucket = STR("other"));
    EXPECT_BROKEN(m->places[1].number = 0);
    EXPECT_BROKEN(m->places[1].storage = STR(""));
    EXPECT_BROKEN(m->places[1].bucket = STR("stranger"));
    EXPECT_BROKEN(m->places[1].bucket = m->places[2].bucket);
    EXPECT_BROKEN(m->last_number = 1);
    EXPECT_BROKEN(m->segments[0].after = STR("a"));
    EXPECT_BROKEN(m->segments[2].after = STR("m"));
    EXPECT_BROKEN(m->segments[1].place = 3);
    EXPECT_BROKEN(m->segments[1].place = 0);
    EXPECT_BROKEN(m->segment_count = 0);
    EXPECT_BROKEN(m->places[1].unclean[0].upto = STR("n"));
    EXPECT_BROKEN(m->places[1].unclean[0].upto = STR("a"));
    EXPECT_BROKEN(m->places[1].unclean[0].upto = STR(""));
    EXPECT_BROKEN(m->move.from = 1);
    EXPECT_BROKEN(map_begin_move(m, SHARD_MERGE, 1, 1, WINDOW("m", "t")));
    EXPECT_BROKEN(map_begin_move(m, SHARD_MERGE, 1, 7, WINDOW("m", "t")));
    EXPECT_BROKEN(map_begin_move(m, SHARD_MERGE, 1, 2, WINDOW("t", "t")));
    EXPECT_BROKEN(map_close(m, SHARD_CLOSED_COPY, WINDOW("t", "t")));
    EXPECT_BROKEN(m->closed_window.upto = STR("t"));
    EXPECT_BROKEN(m->state = SHARD_PLAIN);
}
