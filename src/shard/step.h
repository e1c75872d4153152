/* Named steps of moves, at which tests stop or kill weir. Each step is a pair of calls, one before
 * its effect and one after it. In weir these calls do nothing. In test programs the linker replaces
 * them (tests/crash/lake_faults.c, tests/unit/lake/steps.c).
 *
 *     shard.place    a shard is made, and the map that has it and the move
 *     shard.close    the map that closes a window
 *     shard.adopt    the rows of the window change their shard
 *     shard.commit   the map that gives the window to the other shard, and opens it
 *     shard.open     the map that opens a window that was not handed over
 *     shard.end      the map in which the move has ended
 *     shard.clean    a shard that the map does not have any more is removed
 *     shard.unmap    the maps and the map bucket are removed
 *     shard.changing the map that says that the state of all shards is being changed
 *     shard.state    a shard gets another state (versions, object lock)
 *     shard.all      DeleteBucket: the map that closes every key
 *     shard.deleting DeleteBucket: the map that says that the bucket is being removed
 *     shard.remove   DeleteBucket: the bucket itself is removed */
#ifndef SHARD_STEP_H
#define SHARD_STEP_H

void shard_step_begin(const char *name);
void shard_step_end(const char *name);

#endif
