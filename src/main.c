/* The list of rooms. docs/rooms.md tells how to add one. */
#include "cli/program.h"
#include "replica/room.h"
#include "swarm/room.h"

#include <unistd.h>

/* In the order of help and manual, and of the parts within a stage of the start. */
static const struct room *const rooms[] = {
    &replica_room,
    &swarm_room,
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
