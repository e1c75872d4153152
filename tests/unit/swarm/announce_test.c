/* Answers and failures. */
#include "swarm/announce.h"
#include "unit/test.h"

TEST(swarm_announce, every_failure_has_a_text_and_a_name)
{
    for (int f = SWARM_NONE + 1; f < SWARM_FAILURE_COUNT; f++) {
        CHECK(*swarm_failure_text((enum swarm_failure)f));
        CHECK(*swarm_failure_name((enum swarm_failure)f));
    }
}

TEST(swarm_announce, a_reset_answer_keeps_its_room_alone)
{
    uint8_t room[COMPACT4_LEN];
    struct announce_answer a = {.failure = SWARM_FULL,
                                .complete = 3,
                                .peers4 = {.at = room, .max = 1, .count = 1, .has_ids = true}};

    announce_answer_reset(&a);
    CHECK_INT(a.failure, SWARM_NONE);
    CHECK_INT(a.complete, 0);
    CHECK_INT(a.peers4.count, 0);
    CHECK_INT(a.peers4.max, 1);
    CHECK(a.peers4.at == room && !a.peers4.has_ids);
}
