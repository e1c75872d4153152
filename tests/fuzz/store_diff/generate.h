/* Random steps for the differential fuzz: commands over few keys, so that types collide, with wrong
 * arguments among them; batches; scripts. Times are absolute and never near now: nothing generated
 * races the clock. The same seed gives the same steps. */
#ifndef TESTS_FUZZ_STORE_DIFF_GENERATE_H
#define TESTS_FUZZ_STORE_DIFF_GENERATE_H

#include "unit/store/play.h"

struct generator {
    uint64_t state;
    struct arena *arena; /* where the words of the steps go */
    char family;         /* of the command being made: whose keys it mostly uses; 0: any */
};

void generator_init(struct generator *g, uint64_t seed, struct arena *arena);

/* One step: usually a command, sometimes a batch of some. The caller releases its vector. */
void generate_step(struct generator *g, struct play_step *out);

/* The reply is a free choice of the engine (SPOP, SRANDMEMBER, HRANDFIELD, ZRANDMEMBER, RANDOMKEY).
 */
bool is_random_command(const struct store_args *command);

#endif
