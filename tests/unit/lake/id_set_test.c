/* Sets of ids. */
#include "lake/id_set.h"
#include "base/hex.h"
#include "lake/record.h"
#include "sign/hmac.h"
#include "unit/test.h"

/* The id number `i`. */
static struct str id_of(char out[LAKE_ID_LEN + 1], uint64_t i)
{
    unsigned char hash[SHA256_LEN];

    sha256(str_n(&i, sizeof(i)), hash);
    hex_write(out, hash, sizeof(hash));
    return str_n(out, LAKE_ID_LEN);
}

TEST(lake_id_set, ids_are_there_once_they_were_added)
{
    enum { MANY = 100000 };
    struct id_set set = {0};
    char id[LAKE_ID_LEN + 1];

    CHECK(!id_set_has(&set, id_of(id, 0)));
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(id_set_add(&set, id_of(id, i)));
    CHECK_INT(set.count, MANY);
    CHECK((set.mask + 1) * sizeof(struct id_set_slot) <= 32 * 2 * (size_t)MANY);
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(!id_set_add(&set, id_of(id, i)));
    for (uint64_t i = 0; i < 2 * MANY; i++)
        CHECK_INT(id_set_has(&set, id_of(id, i)), i < MANY);
    CHECK_INT(set.count, MANY);
    id_set_release(&set);
    CHECK(!id_set_has(&set, id_of(id, 1)));
    id_set_release(&set);
}

TEST(lake_id_set, odd_ids_are_ids_too)
{
    static const char *const ids[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "ffffffffffffffffffffffffffffffff00000000000000000000000000000000",
        "00000000000000010000000000000000ffffffffffffffffffffffffffffffff",
    };
    struct id_set set = {0};

    CHECK(id_set_add(&set, str_z(ids[0])));
    CHECK(id_set_has(&set, str_z(ids[0])));
    CHECK(!id_set_has(&set, str_z(ids[1])));
    CHECK(id_set_add(&set, str_z(ids[1])));
    CHECK(id_set_add(&set, str_z(ids[2])));
    CHECK(
        !id_set_has(&set, STR("not an id, but as long as one, so that it could be taken for one")));
    CHECK(!id_set_has(&set, STR("")));
    id_set_release(&set);
}
