/* The program: lists the rooms and runs the command line. docs/rooms.md says how to add a room. */
#include "archive/room.h"
#include "cli/program.h"
#include "lake/room.h"
#include "replica/room.h"
#include "shard/room.h"
#include "swarm/room.h"

#include <unistd.h>

/* The rooms in the order of the help and the manual. Within a stage of the start, their parts start
 * in this order. So the overlay of sharded buckets starts before any room opens a bucket. */
static const struct room *const rooms[] = {
    &shard_room, &replica_room, &swarm_room, &lake_room, &archive_room,
};

int main(int argc, char **argv)
{
    struct program program;
    int status;

    program_init(&program, rooms, ARRAY_SIZE(rooms));
    status = cli_main(&program.table, argc, argv, (const char *const *)environ);
    program_release(&program);
    return status;
}
