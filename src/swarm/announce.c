/* Names, texts and retry times of the reasons for refusing an announce, and the reset of an answer.
 */
#include "swarm/announce.h"

static const struct {
    const char *name, *text;
    int retry;
} failures[] = {
#define X(name, text, retry) {#name, text, retry},
    SWARM_FAILURES(X)
#undef X
};

const char *swarm_failure_text(enum swarm_failure f)
{
    return failures[f].text;
}

const char *swarm_failure_name(enum swarm_failure f)
{
    return failures[f].name;
}

int swarm_failure_retry(enum swarm_failure f)
{
    return failures[f].retry;
}

void announce_answer_reset(struct announce_answer *a)
{
    struct compact peers4 = a->peers4, peers6 = a->peers6;

    peers4.count = peers6.count = 0;
    peers4.has_ids = peers6.has_ids = false;
    *a = (struct announce_answer){.peers4 = peers4, .peers6 = peers6};
}
