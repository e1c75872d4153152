/* What every storage must do, as sentences. Each implementer's test makes a storage and runs them
 * all:
 *
 *     #define X(name) TEST(local_bucket, name) { with_storage(conform_##name); }
 *     BUCKET_CONFORMANCE(X)
 */
#ifndef TESTS_UNIT_OBJECT_BUCKET_CONFORMANCE_H
#define TESTS_UNIT_OBJECT_BUCKET_CONFORMANCE_H

#include "object/overlay.h"
#include "unit/test.h"

struct lab {
    struct storage *storage;
    size_t part_min; /* bytes of every part but the last */
    bool wire;  /* speaks S3: no words for what is opaque, and only those that the protocol has */
    bool plain; /* buckets cannot be asked to keep versions */
};

#define BUCKET_CONFORMANCE(X)                                                                      \
    X(a_bucket_is_there_until_it_is_removed)                                                       \
    X(a_bucket_that_exists_is_not_made_again)                                                      \
    X(a_bucket_with_objects_versions_or_uploads_is_not_removed)                                    \
    X(buckets_list_by_name_and_owner)                                                              \
    X(documents_are_kept_replaced_and_removed)                                                     \
    X(what_was_put_is_read_back)                                                                   \
    X(bodies_of_every_size_come_back)                                                              \
    X(metadata_comes_back_as_given)                                                                \
    X(what_is_opaque_comes_back_as_given)                                                          \
    X(a_put_replaces)                                                                              \
    X(a_body_that_ends_early_leaves_nothing)                                                       \
    X(a_body_that_verify_refuses_leaves_nothing)                                                   \
    X(ranges_are_cut_from_the_body)                                                                \
    X(conditional_reads_follow_the_rfc)                                                            \
    X(conditional_puts_are_judged_against_the_current)                                             \
    X(conditional_removals_are_judged)                                                             \
    X(removing_what_is_not_there_succeeds)                                                         \
    X(keys_that_cannot_be_are_refused)                                                             \
    X(versions_are_kept_newest_first)                                                              \
    X(a_marker_hides_and_its_removal_brings_back)                                                  \
    X(suspended_versions_have_one_null)                                                            \
    X(a_null_version_from_before_is_kept)                                                          \
    X(a_made_up_version_is_not_found)                                                              \
    X(retention_and_hold_keep_versions)                                                            \
    X(meta_of_a_version_can_be_set)                                                                \
    X(a_copy_lives_without_its_source)                                                             \
    X(a_copy_onto_itself_changes_the_metadata)                                                     \
    X(listing_goes_in_byte_order_by_pages)                                                         \
    X(a_delimiter_folds_prefixes)                                                                  \
    X(listing_versions_merges_and_pages)                                                           \
    X(parts_become_an_object)                                                                      \
    X(finishing_checks_the_parts)                                                                  \
    X(finishing_twice_answers_the_same)                                                            \
    X(finishing_again_elsewhere_finds_no_upload)                                                   \
    X(an_aborted_upload_is_gone)                                                                   \
    X(a_part_may_be_a_range_of_an_object)                                                          \
    X(a_part_may_be_a_range_whose_md5_is_known)                                                    \
    X(uploads_and_parts_are_listed)                                                                \
    X(a_reader_keeps_what_it_reads)

#define X(name) void conform_##name(struct lab *lab);
BUCKET_CONFORMANCE(X)
#undef X

/* --- helpers for these and for tests of one implementer --- */

/* Bytes that follow from the seed, in memory that lives as long as the test. */
struct str lab_bytes(size_t len, uint64_t seed);
struct bucket *lab_bucket(struct storage *s, const char *name); /* made; the caller unrefs it */
struct put_result lab_put(struct bucket *b, struct arena *a, const char *key, struct str body);
/* head() and get() of the bucket. A bucket that has head_now() and get_now() must give the same
 * answer by them, or ERR_AGAIN. */
int lab_head(struct bucket *b, struct arena *a, struct str key, struct str version,
             const struct object_conditions *c, struct get_result *out, struct err *err);
int lab_get(struct bucket *b, struct arena *a, struct str key, struct str version,
            const struct object_conditions *c, const struct object_range *range,
            struct get_result *out, struct err *err);
/* The body must be `want`; a NULL p: there must be none. */
void lab_expect(struct bucket *b, const char *key, struct str version, struct str want);
/* The keys (prefixes in brackets) must be these, separated by a blank; markers have a "!" behind
 * them, and in a listing of versions what is latest a "*". lab_everything: from the first to the
 * last. */
extern const struct list_options lab_everything;
void lab_expect_list(struct bucket *b, const struct list_options *o, bool versions,
                     const char *want);
struct remove_result lab_remove(struct bucket *b, struct arena *a, const char *key,
                                struct str version);
struct upload_info lab_upload(struct bucket *b, struct arena *a, const char *key);
struct upload_part lab_part(struct bucket *b, struct arena *a, const struct upload_info *u,
                            uint32_t number, struct str body);

#endif
