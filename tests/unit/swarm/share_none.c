/* Stands in for share.h until it is there, so that the tracker links: goes with src/swarm/share.c. */
#include "swarm/share.h"

int share_open(struct share **out, const struct share_options *o, struct err *err)
{
    return err_code(err, ERR_UNSUPPORTED);
}

void share_close(struct share *s) {}

void share_change(struct share *s, const struct announce *a, enum swarm_change change) {}

void share_stats(struct share *s, struct share_stats *out)
{
    *out = (struct share_stats){0};
}
