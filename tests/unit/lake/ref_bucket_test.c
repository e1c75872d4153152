/* A branch of a repository conforms as a bucket, except for what only buckets with versions or with
 * access lists can do. */
#include "unit/lake/front_lab.h"

#define REF_CONFORMANCE(X)                                                                         \
    X(a_bucket_is_there_until_it_is_removed)                                                       \
    X(a_bucket_that_exists_is_not_made_again)                                                      \
    X(documents_are_kept_replaced_and_removed)                                                     \
    X(what_was_put_is_read_back)                                                                   \
    X(bodies_of_every_size_come_back)                                                              \
    X(metadata_comes_back_as_given)                                                                \
    X(a_put_replaces)                                                                              \
    X(a_body_that_ends_early_leaves_nothing)                                                       \
    X(a_body_that_verify_refuses_leaves_nothing)                                                   \
    X(ranges_are_cut_from_the_body)                                                                \
    X(conditional_reads_follow_the_rfc)                                                            \
    X(conditional_puts_are_judged_against_the_current)                                             \
    X(conditional_removals_are_judged)                                                             \
    X(removing_what_is_not_there_succeeds)                                                         \
    X(keys_that_cannot_be_are_refused)                                                             \
    X(a_copy_lives_without_its_source)                                                             \
    X(a_copy_onto_itself_changes_the_metadata)                                                     \
    X(listing_goes_in_byte_order_by_pages)                                                         \
    X(a_delimiter_folds_prefixes)                                                                  \
    X(parts_become_an_object)                                                                      \
    X(finishing_checks_the_parts)                                                                  \
    X(finishing_twice_answers_the_same)                                                            \
    X(finishing_again_elsewhere_finds_no_upload)                                                   \
    X(an_aborted_upload_is_gone)                                                                   \
    X(a_part_may_be_a_range_of_an_object)                                                          \
    X(a_part_may_be_a_range_whose_md5_is_known)                                                    \
    X(uploads_and_parts_are_listed)                                                                \
    X(a_reader_keeps_what_it_reads)

#define X(name)                                                                                    \
    FRONT_TEST(ref_bucket, name)                                                                   \
    {                                                                                              \
        struct lab lab = {.storage = &f->refs, .part_min = LAKE_LAB_PART_MIN, .plain = true};      \
        conform_##name(&lab);                                                                      \
    }
REF_CONFORMANCE(X)
#undef X
