/* Limits each event to LOG_BURST lines per window. */
#include "base/hash.h"
#include "base/log_int.h"

static struct log_rate_slot *rate_slot(struct log_rate *r, const char *event)
{
    size_t start = hash_xxh3(str_z(event), 0) % LOG_RATE_SLOTS;

    for (size_t i = 0; i < LOG_RATE_SLOTS; i++) {
        struct log_rate_slot *slot = &r->slots[(start + i) % LOG_RATE_SLOTS];
        if (!slot->event)
            slot->event = event;
        if (slot->event == event || strcmp(slot->event, event) == 0)
            return slot;
    }
    return NULL;
}

static bool window_over(const struct log_rate_slot *slot, uint64_t now_ms)
{
    return now_ms - slot->opened_ms >= LOG_WINDOW_MS;
}

bool log_rate_admit(struct log_rate *r, const char *event, enum log_level level, uint64_t now_ms)
{
    struct log_rate_slot *slot = rate_slot(r, event);

    if (!slot)
        return true;
    if (slot->lines == 0 || window_over(slot, now_ms)) {
        slot->opened_ms = now_ms;
        slot->lines = 0;
    }
    if (slot->lines < LOG_BURST) {
        slot->lines++;
        return true;
    }
    r->owing += slot->left_out == 0;
    slot->left_out++;
    slot->level = level > slot->level ? level : slot->level;
    return false;
}

bool log_rate_settle(struct log_rate *r, uint64_t now_ms, struct log_rate_slot *out)
{
    for (size_t i = 0; r->owing && i < LOG_RATE_SLOTS; i++) {
        struct log_rate_slot *slot = &r->slots[i];
        if (slot->left_out == 0 || !window_over(slot, now_ms))
            continue;
        *out = *slot;
        slot->left_out = 0;
        slot->level = LOG_DEBUG;
        r->owing--;
        return true;
    }
    return false;
}
