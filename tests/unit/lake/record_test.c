/* The records of the lake, and the ids that are made of them. */
#include "lake/record.h"
#include "unit/test.h"

#include "base/hex.h"

#include <string.h>

/* --- ids --- */

TEST(lake_record, commit_id_is_that_of_lakefs)
{
    struct str parents[] = {STR("132456987153687sdfsdf"), STR("1324569csfvdkjhcsdkjc")};
    struct str_pair pairs[] = {{STR("sdkafjnb"), STR("1234")},
                               {STR("sdkjvcnbkjndsc"), STR("asnjkdl")}};
    struct lake_commit c = {.committer = STR("some-committer"),
                            .message = STR("I just committed"),
                            .tree = STR("123456789987654321"),
                            .created_ms = 1611501012000 + 999,
                            .metadata = {pairs, 2},
                            .parents = parents,
                            .parent_count = 2,
                            .version = 1,
                            .generation = 7};
    char id[LAKE_ID_LEN + 1];

    lake_commit_id(id, &c);
    CHECK_STR(str_z(id), STR("f1a106bbeb12d3eb54418d6000f4507501d289d0d0879dcce6f4d31425587df1"));
    c.generation = 8;
    c.version = 0;
    lake_commit_id(id, &c);
    CHECK_STR(str_z(id), STR("f1a106bbeb12d3eb54418d6000f4507501d289d0d0879dcce6f4d31425587df1"));
    c.message = STR("I just committed!");
    lake_commit_id(id, &c);
    CHECK(id[0] != 'f' || id[1] != '1' || id[2] != 'a');
}

static void identity_of(unsigned char out[LAKE_IDENTITY_LEN], struct lake_entry e)
{
    lake_entry_identity(out, &e);
}

TEST(lake_record, identity_says_what_the_object_is_and_not_where_or_when)
{
    unsigned char one[LAKE_IDENTITY_LEN], other[LAKE_IDENTITY_LEN];
    struct lake_entry e = {.address = STR("data/x"),
                           .address_type = LAKE_RELATIVE,
                           .modified_ms = 5,
                           .size = 3,
                           .etag = STR("abc")};

    identity_of(one, e);
    e.address = STR("s3://b/k");
    e.address_type = LAKE_FULL;
    e.modified_ms = 6;
    identity_of(other, e);
    CHECK(memcmp(one, other, sizeof(one)) == 0);
    e.tags = STR("a=b");
    identity_of(other, e);
    CHECK(memcmp(one, other, sizeof(one)) != 0);
    e.tags = STR_EMPTY;
    e.content_type = STR("text/plain");
    identity_of(other, e);
    CHECK(memcmp(one, other, sizeof(one)) != 0);
}

/* --- records --- */

TEST(lake_record, branch_is_read_as_it_was_written)
{
    struct arena a = {0};
    struct buf out = {0};
    struct err err = {0};
    struct str sealed[] = {STR("t2"), STR("t1")};
    struct lake_branch b = {.id = STR("main"),
                            .commit_id = STR("c"),
                            .staging = STR("t3"),
                            .sealed = sealed,
                            .sealed_count = 2,
                            .hidden = true,
                            .revision = 1ULL << 40,
                            .epoch = 9};
    struct lake_branch back;

    lake_branch_write(&out, &b);
    CHECK_OK(lake_branch_read(&back, &a, buf_str(&out), &err));
    CHECK_STR(back.id, b.id);
    CHECK_STR(back.staging, b.staging);
    CHECK_INT(back.sealed_count, 2);
    CHECK_STR(back.sealed[0], sealed[0]);
    CHECK_STR(back.sealed[1], sealed[1]);
    CHECK(back.hidden);
    CHECK_INT(back.revision, b.revision);
    CHECK_INT(back.epoch, 9);
    buf_release(&out);
    arena_release(&a);
}

TEST(lake_record, entry_keeps_all_that_s3_keeps)
{
    struct arena a = {0};
    struct buf out = {0};
    struct err err = {0};
    struct str_pair meta[] = {{STR("colour"), STR("red")}, {STR("size"), STR_EMPTY}};
    struct str_pair headers[] = {{STR("cache-control"), STR("no-cache")}};
    uint64_t parts[] = {5 << 20, 17, 300};
    struct lake_entry e = {.address = STR("data/x"),
                           .address_type = LAKE_RELATIVE,
                           .modified_ms = 1700000000123,
                           .size = UINT64_MAX / 4,
                           .etag = STR("e-3"),
                           .metadata = {meta, 2},
                           .content_type = STR("a/b"),
                           .headers = {headers, 1},
                           .tags = STR("a=b"),
                           .checksum_type = 2,
                           .checksum_kind = 4,
                           .checksum = STR("sum"),
                           .part_sizes = parts,
                           .part_count = 3,
                           .storage_class = STR("GLACIER"),
                           .owner = STR("u")};
    struct lake_entry back;

    lake_entry_write(&out, &e);
    CHECK_OK(lake_entry_read(&back, &a, buf_str(&out), &err));
    CHECK_INT(back.size, e.size);
    CHECK_INT(back.modified_ms, e.modified_ms);
    CHECK_INT(back.metadata.count, 2);
    CHECK_STR(back.metadata.pairs[1].key, STR("size"));
    CHECK_INT(back.metadata.pairs[1].value.len, 0);
    CHECK_STR(back.headers.pairs[0].value, STR("no-cache"));
    CHECK_INT(back.part_count, 3);
    CHECK_INT(back.part_sizes[2], 300);
    CHECK_STR(back.checksum, STR("sum"));
    CHECK_STR(back.owner, STR("u"));
    CHECK_INT(back.address_type, LAKE_RELATIVE);
    buf_release(&out);
    arena_release(&a);
}

TEST(lake_record, address_without_a_type_is_read_by_its_form)
{
    struct arena a = {0};
    struct err err = {0};
    struct lake_entry e;

    CHECK_OK(lake_entry_read(&e, &a, STR("\x0a\x0as3://b/key"), &err));
    CHECK_INT(e.address_type, LAKE_FULL);
    CHECK_OK(lake_entry_read(&e, &a,
                             STR("\x0a\x03"
                                 "key"),
                             &err));
    CHECK_INT(e.address_type, LAKE_RELATIVE);
    arena_release(&a);
}

TEST(lake_record, first_parent_of_an_old_commit_is_its_last_one)
{
    struct str parents[] = {STR("a"), STR("b")};
    struct lake_commit c = {.parents = parents, .parent_count = 2, .version = 1};

    CHECK_STR(lake_commit_first_parent(&c), STR("a"));
    c.version = 0;
    CHECK_STR(lake_commit_first_parent(&c), STR("b"));
    c.parent_count = 0;
    CHECK_INT(lake_commit_first_parent(&c).len, 0);
}

TEST(lake_record, too_many_items_inside_of_an_entry_are_not_written)
{
    struct str_pair pairs[LAKE_METADATA_MAX + 1] = {0};
    struct lake_entry e = {.headers = {pairs, LAKE_METADATA_MAX}};
    struct buf out = {0};

    lake_entry_write(&out, &e);
    CHECK_INT(buf_error(&out), 0);
    e.headers.count++;
    lake_entry_write(&out, &e);
    CHECK_INT(buf_error(&out), ERR_TOO_LARGE);
    buf_release(&out);
}

TEST(lake_record, too_many_items_and_wrong_wires_are_damage)
{
    struct arena a = {0};
    struct buf many = {0};
    struct err err = {0};
    struct lake_branch b;
    struct lake_commit c;

    for (int i = 0; i <= LAKE_SEALED_MAX; i++)
        buf_append_str(&many, STR("\x22\x01t"));
    CHECK_ERR(lake_branch_read(&b, &a, buf_str(&many), &err), ERR_CORRUPT);
    CHECK_ERR(lake_branch_read(&b, &a, STR("\x08\x01"), &err), ERR_CORRUPT);
    CHECK_ERR(lake_branch_read(&b, &a,
                               STR("\x0a\x05"
                                   "abc"),
                               &err),
              ERR_CORRUPT);
    CHECK_ERR(lake_commit_read(&c, &a, STR("\x48\xff\xff\xff\xff\x7f"), &err), ERR_CORRUPT);
    buf_release(&many);
    arena_release(&a);
}
