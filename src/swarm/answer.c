/* Writes the tracker's answers in bencode. */
#include "swarm/answer.h"
#include "base/bytes.h"
#include "swarm/bencode.h"

#include <arpa/inet.h>

static void write_compact(struct bencode_out *w, const char *key, const struct compact *peers,
                          size_t size)
{
    bencode_member_str(w, key, str_n(peers->at, peers->count * size));
}

/* Writes the peers of one family as dictionaries into the open list. The peers of both families are
 * in one list. */
static void write_peer_list(struct bencode_out *w, const struct compact *peers, bool v6, bool ids)
{
    size_t ip_len = v6 ? 16 : 4;

    for (size_t i = 0; i < peers->count; i++) {
        const uint8_t *peer = peers->at + i * (ip_len + 2);
        char text[INET6_ADDRSTRLEN] = "";
        inet_ntop(v6 ? AF_INET6 : AF_INET, peer, text, sizeof(text));
        bencode_open(w, 'd');
        bencode_member_str(w, "ip", str_z(text));
        if (ids && peers->ids && peers->has_ids)
            bencode_member_str(w, "peer id", str_n(peers->ids + i * PEER_ID_LEN, PEER_ID_LEN));
        bencode_member_int(w, "port", be16_read(peer + ip_len));
        bencode_close(w);
    }
}

static void write_peers(struct bencode_out *w, const struct announce_answer *a,
                        const struct answer_form *form)
{
    if (form->compact) {
        write_compact(w, "peers", &a->peers4, COMPACT4_LEN);
        if (a->peers6.count)
            write_compact(w, "peers6", &a->peers6, COMPACT6_LEN);
        return;
    }
    bencode_key(w, STR("peers"));
    bencode_open(w, 'l');
    write_peer_list(w, &a->peers4, false, !form->no_peer_id);
    write_peer_list(w, &a->peers6, true, !form->no_peer_id);
    bencode_close(w);
}

void answer_announce(struct buf *out, const struct announce_answer *a,
                     const struct answer_form *form)
{
    struct bencode_out w;

    bencode_out_init(&w, out);
    bencode_open(&w, 'd');
    bencode_member_int(&w, "complete", a->complete);
    bencode_member_int(&w, "downloaded", a->downloaded);
    if (form->external)
        bencode_member_str(&w, "external ip",
                           str_n(form->external->ip, form->external->v6 ? 16 : 4));
    bencode_member_int(&w, "incomplete", a->incomplete);
    bencode_member_int(&w, "interval", a->interval_s);
    bencode_member_int(&w, "min interval", a->min_interval_s);
    write_peers(&w, a, form);
    bencode_close(&w);
}

void answer_scrape(struct buf *out, const uint8_t *hashes, const struct scrape_entry *entries,
                   size_t count, uint32_t min_interval_s)
{
    struct bencode_out w;

    bencode_out_init(&w, out);
    bencode_open(&w, 'd');
    bencode_key(&w, STR("files"));
    bencode_open(&w, 'd');
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].known)
            continue;
        bencode_key(&w, str_n(hashes + i * INFO_HASH_LEN, INFO_HASH_LEN));
        bencode_open(&w, 'd');
        bencode_member_int(&w, "complete", entries[i].complete);
        bencode_member_int(&w, "downloaded", entries[i].downloaded);
        bencode_member_int(&w, "downloaders", entries[i].downloaders);
        bencode_member_int(&w, "incomplete", entries[i].incomplete);
        bencode_close(&w);
    }
    bencode_close(&w);
    bencode_key(&w, STR("flags"));
    bencode_open(&w, 'd');
    bencode_member_int(&w, "min_request_interval", min_interval_s);
    bencode_close(&w);
    bencode_close(&w);
}

void answer_failure(struct buf *out, enum swarm_failure failure, const char *words)
{
    int retry = swarm_failure_retry(failure);
    struct bencode_out w;

    bencode_out_init(&w, out);
    bencode_open(&w, 'd');
    bencode_member_str(&w, "failure reason", str_z(words ? words : swarm_failure_text(failure)));
    if (retry > 0)
        bencode_member_int(&w, "retry in", retry);
    else if (retry < 0)
        bencode_member_str(&w, "retry in", STR("never"));
    bencode_close(&w);
}
