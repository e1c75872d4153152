/* The named steps of moves: nothing happens at them outside of tests. */
#include "shard/step.h"

void shard_step_begin(const char *name)
{
}

void shard_step_end(const char *name)
{
}
