/* What every storage must do: buckets and their listings. */
#include "unit/object/bucket_conformance.h"

#define POLICY(effect)                                                                             \
    STR("{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"" effect                         \
        "\",\"Principal\":{\"AWS\":\"*\"},\"Action\":\"s3:GetObjectTorrent\","                     \
        "\"Resource\":\"arn:aws:s3:::box/*\"}]}")

/* --- buckets --- */

void conform_a_bucket_is_there_until_it_is_removed(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct arena a = ARENA_INIT(0);
    struct bucket *b = NULL;
    struct bucket_info info;
    struct get_result got;
    struct err err = {0};

    CHECK_ERR(storage_open_bucket(&b, s, STR("owner"), STR("photos"), &err), ERR_NO_BUCKET);
    b = lab_bucket(s, "photos");
    CHECK_OK(b->ops->info(b, &a, &info, &err));
    CHECK_STR(info.name, STR("photos"));
    CHECK_STR(info.owner, STR("owner"));
    CHECK(info.created_ms > 0);
    CHECK_INT(info.versions, VERSIONS_NEVER);
    CHECK_OK(s->ops->check(s, &err));
    CHECK_OK(storage_remove_bucket(s, STR("owner"), STR("photos"), &err));
    CHECK_ERR(storage_remove_bucket(s, STR("owner"), STR("photos"), &err), ERR_NO_BUCKET);
    /* Somebody still holds it. */
    struct str_reader r;
    struct put_options o = {0};
    struct put_result out;
    str_reader_init(&r, STR("x"));
    CHECK_ERR(b->ops->put(b, &a, STR("k"), &r.reader, 1, &o, &out, &err), ERR_NO_BUCKET);
    CHECK_ERR(lab_head(b, &a, STR("k"), STR_EMPTY, NULL, &got, &err), ERR_NO_BUCKET);
    CHECK_ERR(b->ops->info(b, &a, &info, &err), ERR_NO_BUCKET);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_bucket_that_exists_is_not_made_again(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket *b = lab_bucket(s, "photos");
    struct bucket_info again = {.name = STR("photos"), .owner = STR("other")};
    struct err err = {0};

    CHECK_ERR(storage_create_bucket(s, &again, &err), ERR_EXISTS);
    b->ops->unref(b);
}

void conform_a_bucket_with_objects_versions_or_uploads_is_not_removed(struct lab *lab)
{
    struct storage *s = lab->storage;
    struct bucket *b = lab_bucket(s, "box");
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    CHECK_OK(b->ops->set_versions(b, true, &err));
    struct put_result first = lab_put(b, &a, "k", STR("x"));
    CHECK_ERR(storage_remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    struct remove_result marker = lab_remove(b, &a, "k", STR_EMPTY);
    CHECK_ERR(storage_remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    lab_remove(b, &a, "k", first.version);
    CHECK_ERR(storage_remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    lab_remove(b, &a, "k", marker.version);
    struct upload_info u = lab_upload(b, &a, "k");
    if (!lab->wire) /* S3 takes uploads that nobody finished with the bucket */
        CHECK_ERR(storage_remove_bucket(s, STR("owner"), STR("box"), &err), ERR_CONFLICT);
    CHECK_OK(b->ops->upload_abort(b, &u, &err));
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Allow"), &err));
    CHECK_OK(storage_remove_bucket(s, STR("owner"), STR("box"), &err));
    b->ops->unref(b);
    /* A new one of the name has nothing of the old. */
    b = lab_bucket(s, "box");
    struct str document;
    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    lab_expect_list(b, &lab_everything, true, "");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_buckets_list_by_name_and_owner(struct lab *lab)
{
    struct storage *s = lab->storage;
    static const char *const names[] = {"ccc", "aaa", "bbb", "aab"};
    struct arena a = ARENA_INIT(0);
    struct bucket_info *infos;
    struct err err = {0};
    size_t count;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct bucket_info info = {.name = str_z(names[i]),
                                   .owner = i == 0 ? STR("me") : STR("you")};
        CHECK_OK(storage_create_bucket(s, &info, &err));
    }
    CHECK_OK(storage_list_buckets(s, &a, STR_EMPTY, STR_EMPTY, 100, &infos, &count, &err));
    CHECK_INT(count, 4);
    CHECK_STR(infos[1].name, STR("aab"));
    CHECK_OK(storage_list_buckets(s, &a, STR("you"), STR("aaa"), 1, &infos, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(infos[0].name, STR("aab"));
    CHECK_OK(storage_list_buckets(s, &a, STR("me"), STR_EMPTY, 100, &infos, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(infos[0].name, STR("ccc"));
    arena_release(&a);
}

void conform_documents_are_kept_replaced_and_removed(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct str document;
    struct err err = {0};

    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Allow"), &err));
    CHECK_OK(b->ops->set_document(b, "policy", POLICY("Deny"), &err));
    CHECK_OK(b->ops->get_document(b, &a, "policy", &document, &err));
    CHECK_STR(document, POLICY("Deny"));
    CHECK_ERR(b->ops->get_document(b, &a, "cors", &document, &err), ERR_NOT_FOUND);
    CHECK_OK(b->ops->set_document(b, "policy", STR_EMPTY, &err));
    CHECK_ERR(b->ops->get_document(b, &a, "policy", &document, &err), ERR_NOT_FOUND);
    b->ops->unref(b);
    arena_release(&a);
}

/* --- listings --- */

void conform_listing_goes_in_byte_order_by_pages(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    static const char *const keys[] = {"b", "a", "a!", "a/b", "aa", "\xc3\xbc", "B", "a/"};
    struct list_options o = {.limit = 3};
    struct list_result got;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        lab_put(b, &a, keys[i], str_z(keys[i]));
    lab_expect_list(b, &lab_everything, false, "B a a! a/ a/b aa b \xc3\xbc");
    lab_expect_list(b, &o, false, "B a a! ...");
    CHECK_OK(b->ops->list(b, &a, &o, &got, &err));
    CHECK_STR(got.next, STR("a!"));
    o.after = got.next;
    lab_expect_list(b, &o, false, "a/ a/b aa ...");
    o.after = STR("aa");
    lab_expect_list(b, &o, false, "b \xc3\xbc");
    o = (struct list_options){.prefix = STR("a"), .limit = 5};
    lab_expect_list(b, &o, false, "a a! a/ a/b aa");
    o = (struct list_options){.prefix = STR("a"), .after = STR("zzz")};
    lab_expect_list(b, &o, false, "");
    o = (struct list_options){.prefix = STR("b"), .after = STR("a")};
    lab_expect_list(b, &o, false, "b");
    CHECK_OK(b->ops->list(b, &a, &(struct list_options){.limit = 0}, &got, &err));
    CHECK(got.count == 0 && !got.more);
    b->ops->unref(b);
    arena_release(&a);
}

void conform_a_delimiter_folds_prefixes(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    static const char *const keys[] = {"a", "d/1", "d/2", "d/e/1", "d/e/2", "f//g", "z"};
    struct list_options o = {.delimiter = STR("/")};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        lab_put(b, &a, keys[i], STR("x"));
    lab_expect_list(b, &o, false, "a [d/] [f/] z");
    lab_expect_list(b, &o, true, "a* [d/] [f/] z*");
    o.limit = 2;
    lab_expect_list(b, &o, false, "a [d/] ...");
    lab_expect_list(b, &o, true, "a* [d/] ...");
    o.after = STR("d/");
    lab_expect_list(b, &o, false, "[f/] z");
    lab_expect_list(b, &o, true, "[f/] z*");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d/")};
    lab_expect_list(b, &o, false, "d/1 d/2 [d/e/]");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d/e/")};
    lab_expect_list(b, &o, false, "d/e/1 d/e/2");
    o = (struct list_options){.delimiter = STR("/"), .prefix = STR("d")};
    lab_expect_list(b, &o, false, "[d/]");
    o = (struct list_options){.delimiter = STR("//")};
    lab_expect_list(b, &o, false, "a d/1 d/2 d/e/1 d/e/2 [f//] z");
    o = (struct list_options){.delimiter = STR("/"), .after = STR("d/1")};
    lab_expect_list(b, &o, false, "[d/] [f/] z");
    b->ops->unref(b);
    arena_release(&a);
}

void conform_listing_versions_merges_and_pages(struct lab *lab)
{
    struct bucket *b = lab_bucket(lab->storage, "box");
    struct arena a = ARENA_INIT(0);
    struct buf seen = BUF_INIT(0);
    struct list_options o = {.limit = 1};
    struct list_result got;
    struct err err = {0};

    lab_put(b, &a, "a", STR("null"));
    CHECK_OK(b->ops->set_versions(b, true, &err));
    lab_put(b, &a, "a", STR("2"));
    lab_put(b, &a, "ab", STR("1"));
    lab_remove(b, &a, "ab", STR_EMPTY);
    lab_put(b, &a, "b", STR("1"));
    lab_put(b, &a, "b", STR("2"));
    lab_remove(b, &a, "c", STR_EMPTY);
    lab_expect_list(b, &lab_everything, true, "a* a ab!* ab b* b c!*");
    lab_expect_list(b, &lab_everything, false, "a b");
    do {
        CHECK_OK(b->ops->list_versions(b, &a, &o, &got, &err));
        CHECK_INT(got.count, 1);
        buf_append_str(&seen, got.entries[0].info.key);
        buf_append_z(&seen, got.entries[0].info.is_marker ? "!" : "");
        buf_append_z(&seen, got.entries[0].info.is_latest ? "* " : " ");
        o.after = got.next;
        o.after_version = got.next_version;
    } while (got.more);
    CHECK_STR(buf_str(&seen), STR("a* a ab!* ab b* b c!* "));
    o = (struct list_options){.after = STR("a")};
    lab_expect_list(b, &o, true, "ab!* ab b* b c!*");
    o = (struct list_options){.prefix = STR("ab")};
    lab_expect_list(b, &o, true, "ab!* ab");
    buf_release(&seen);
    b->ops->unref(b);
    arena_release(&a);
}
