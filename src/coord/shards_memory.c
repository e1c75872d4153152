/* Since when the store has remembered what a process told it (coord/shards_memory.h). */
#include "coord/shards_memory.h"

static void memory_copy(char *out, size_t room, struct str text)
{
    size_t len = text.len < room ? text.len : room - 1;

    if (len)
        memcpy(out, text.p, len);
    out[len] = '\0';
}

void shards_memory_took(struct shards_memory *m, struct str before, struct str word, struct str run,
                        uint64_t now_ns)
{
    bool first = m->word.text[0] == '\0';

    if (first || !str_eq(before, str_z(m->word.text)) || !str_eq(run, str_z(m->word.run)))
        m->since_ns = now_ns;
    memory_copy(m->word.text, sizeof(m->word.text), word);
    memory_copy(m->word.run, sizeof(m->word.run), run);
}

bool shards_memory_holds(const struct shards_memory *m, uint64_t now_ns)
{
    return m->word.text[0] && now_ns >= m->since_ns &&
           now_ns - m->since_ns >= SHARDS_FORGOTTEN_MS * NS_PER_MS;
}
