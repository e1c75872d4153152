/* Shared looks at the newest map's number (shard/proof.h). */
#include "shard/proof.h"
#include "shard/log.h"

void proof_init(struct shard_proof *p, struct bucket *log)
{
    *p = (struct shard_proof){.log = log};
    mutex_init(&p->lock, "shard.proof");
    cond_init(&p->ended);
}

void proof_release(struct shard_proof *p)
{
    cond_release(&p->ended);
    mutex_release(&p->lock);
}

/* Does a look. The lock is held before and after the call, but not during the look. */
static void proof_do(struct shard_proof *p)
{
    struct err failed = {0};
    uint64_t number = 0;

    p->begun++;
    mutex_unlock(&p->lock);
    int code = log_newest(p->log, &number, &failed);
    mutex_lock(&p->lock);
    p->done++;
    p->number = number;
    p->failed = code < 0 ? failed : (struct err){0};
    cond_broadcast(&p->ended);
}

int proof_look(struct shard_proof *p, uint64_t *number, struct err *err)
{
    int code = 0;

    mutex_lock(&p->lock);
    uint64_t wanted = p->begun + 1; /* the first look that begins after this call */
    while (p->done < wanted)
        if (p->begun == p->done)
            proof_do(p);
        else
            cond_wait(&p->ended, &p->lock);
    if (p->failed.code < 0)
        code = err_set(err, p->failed.code, "%s", p->failed.text);
    else
        *number = p->number;
    mutex_unlock(&p->lock);
    return code;
}
