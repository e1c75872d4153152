/* What every table of place calls must do (shard/place.h), as sentences. The test of each kind of
 * storage opens an empty storage and runs them all:
 *
 *     #define X(name) TEST(place_local, name) { with_storage(conform_##name); }
 *     PLACE_CONFORMANCE(X)
 */
#ifndef TESTS_UNIT_SHARD_PLACE_CONFORMANCE_H
#define TESTS_UNIT_SHARD_PLACE_CONFORMANCE_H

#include "shard/place.h"

struct place_lab {
    struct storage *storage;
    const struct place_ops *ops;
    /* Appends everything that can be seen of a bucket and that give() keeps. */
    void (*describe)(struct bucket *b, struct buf *out);
};

#define PLACE_CONFORMANCE(X)                                                                       \
    X(a_shard_has_the_id_of_its_bucket)                                                            \
    X(a_later_bucket_of_the_name_has_another_id)                                                   \
    X(a_shard_begins_with_the_state_of_its_bucket)                                                 \
    X(a_name_that_is_taken_is_not_used_again)                                                      \
    X(a_shard_is_removed_when_it_is_empty)                                                         \
    X(a_bucket_is_removed_and_never_a_later_one_of_its_name)                                       \
    X(a_map_bucket_is_made_and_removed)                                                            \
    X(a_fence_ends_the_calls_of_earlier_references)                                                \
    X(usage_is_the_sum_of_the_buckets)                                                             \
    X(the_keys_of_a_window_are_counted)                                                            \
    X(a_sample_has_evenly_spaced_keys)                                                             \
    X(a_key_with_few_versions_is_not_too_large)                                                    \
    X(the_keys_of_a_window_are_given_and_no_others)                                                \
    X(what_is_given_looks_as_before)                                                               \
    X(giving_twice_is_giving_once)                                                                 \
    X(giving_is_undone)                                                                            \
    X(giving_is_undone_when_it_was_interrupted)                                                    \
    X(a_key_that_the_target_has_is_not_overwritten)                                                \
    X(garbage_is_removed_from_its_window_alone)                                                    \
    X(garbage_is_removed_in_spite_of_object_lock)

#define X(name) void conform_##name(struct place_lab *l);
PLACE_CONFORMANCE(X)
#undef X

#endif
