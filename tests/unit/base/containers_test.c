/* map, vec and list. */
#include "base/ids.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "unit/test.h"

#include <stdio.h>

TEST(map, follows_a_plain_array_through_random_puts_and_removes)
{
    enum { KEYS = 300, STEPS = 20000 };
    static char keys[KEYS][8];
    static void *model[KEYS];
    struct map m;
    size_t count = 0;

    map_init(&m);
    for (size_t i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = random_below(KEYS);
        struct str key = str_z(keys[i]);
        CHECK(map_get(&m, key) == model[i]);
        if (random_below(2)) {
            void *value = &keys[random_below(KEYS)];
            CHECK(map_put(&m, key, value) == model[i]);
            count += !model[i];
            model[i] = value;
        } else {
            CHECK(map_remove(&m, key) == model[i]);
            count -= model[i] != NULL;
            model[i] = NULL;
        }
        CHECK_INT(m.len, count);
    }
    map_release(&m);
}

TEST(map, iteration_meets_each_entry_once_and_may_remove_it)
{
    static char keys[100][8];
    struct map m;
    size_t cursor = 0, seen = 0;
    struct str key;
    void *value;

    map_init(&m);
    CHECK(!map_next(&m, &cursor, &key, &value));
    for (size_t i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%zu", i);
        map_put(&m, str_z(keys[i]), keys[i]);
    }
    for (cursor = 0; map_next(&m, &cursor, &key, &value); seen++) {
        CHECK(key.p == value);
        CHECK(map_remove(&m, key) == value);
    }
    CHECK_INT(seen, 100);
    CHECK_INT(m.len, 0);
    map_release(&m);
}

TEST(map, keys_may_be_empty_or_hold_nul)
{
    struct map m;
    int a, b;

    map_init(&m);
    map_put(&m, STR_EMPTY, &a);
    map_put(&m, STR("x\0y"), &b);
    CHECK(map_get(&m, STR("")) == &a);
    CHECK(map_get(&m, STR("x\0y")) == &b);
    CHECK(map_get(&m, STR("x")) == NULL);
    map_release(&m);
}

TEST(vec, pushes_pops_and_removes_in_order)
{
    VEC(int) v = {0};
    int sum = 0;

    for (int i = 0; i < 100; i++)
        vec_push(&v, i);
    CHECK_INT(vec_pop(&v), 99);
    vec_remove(&v, 0);
    vec_remove(&v, v.len - 1);
    CHECK_INT(v.items[0], 1);
    CHECK_INT(*vec_last(&v), 97);
    vec_each (&v, int *, n)
        sum += *n;
    CHECK_INT(sum, 97 * 98 / 2);
    vec_release(&v);
    CHECK(v.items == NULL && v.len == 0);
}

struct item {
    int n;
    struct list node;
};

static void check_items(struct list *l, const char *want)
{
    list_each (l, struct item, node, it) {
        CHECK_INT(it->n, *want - '0');
        want++;
    }
    CHECK_INT(*want, '\0');
}

TEST(list, keeps_order_through_pushes_shifts_and_splices)
{
    struct item items[6];
    struct list a, b;

    list_init(&a);
    list_init(&b);
    CHECK(list_shift(&a) == NULL);
    for (int i = 0; i < 6; i++) {
        items[i].n = i;
        list_push(i < 3 ? &a : &b, &items[i].node);
    }
    list_splice(&a, &b);
    CHECK(list_empty(&b));
    list_splice(&a, &b);
    check_items(&a, "012345");
    list_remove(&items[3].node);
    list_remove(&items[3].node);
    list_push_front(&a, &items[3].node);
    check_items(&a, "301245");
    CHECK(list_shift(&a) == &items[3].node);
    list_each_safe (&a, struct item, node, it) {
        if (it->n % 2 == 0)
            list_remove(&it->node);
    }
    check_items(&a, "15");
}
