/* The packets of git's protocol, "pkt-lines", and the side-band inside them (gitprotocol-common,
 * gitprotocol-pack, gitprotocol-v2).
 *
 * A packet is four hex digits and a payload; the digits are the length of both together. Lengths 0,
 * 1 and 2 are marks without a payload: flush, delimiter, end of response. A git server may be
 * hostile: it may cut a packet anywhere, send lengths that are not numbers, or never end. All
 * memory is one buffer of PKT_BUFFER bytes. A pkt_in belongs to one thread. */
#ifndef ARCHIVE_PKT_H
#define ARCHIVE_PKT_H

#include "os/stream.h"

enum {
    PKT_MAX = 65520, /* most bytes of a packet, with its four digits */
    PKT_BUFFER = 128 * 1024,
    BAND_TEXT_MAX = 64 * 1024,            /* most bytes of the server's message that are kept */
    BAND_PROGRESS_MAX = 64 * 1024 * 1024, /* most bytes of progress that a server may send in all */
};

enum pkt_kind { PKT_FLUSH, PKT_DELIM, PKT_RESPONSE_END, PKT_DATA };

struct pkt {
    enum pkt_kind kind;
    struct str data; /* borrowed until the next read */
};

struct pkt_in {
    struct reader *from; /* borrowed */
    char *bytes;         /* PKT_BUFFER bytes */
    size_t at, end;      /* range of the bytes that are not read yet */
};

void pkt_in_init(struct pkt_in *in, struct reader *from);
void pkt_in_release(struct pkt_in *in);

/* Reads the next packet. ERR_END: the stream ended between two packets. ERR_PARSE: the bytes are
 * not a packet. ERR_CLOSED: the stream ended inside a packet. */
int pkt_read(struct pkt_in *in, struct pkt *out, struct err *err) MUST_CHECK;

/* The beginning of an error text whose rest is the server's own message. */
#define PEER_SAYS "the git server says: "

/* Puts back the packet that was read last, so that the next read returns it again. */
void pkt_unread(struct pkt_in *in, const struct pkt *p);

/* Reads a packet that must be a line; *line is without its newline. ERR_PEER: the server has sent
 * "ERR <message>", which it may send in place of any line; err has PEER_SAYS and the message.
 * ERR_END: the packet is a flush or another mark; *mark says which one (`mark` may be NULL).
 * ERR_CLOSED: the stream has ended. */
int pkt_read_line(struct pkt_in *in, struct str *line, enum pkt_kind *mark,
                  struct err *err) MUST_CHECK;

/* Appends a packet with the text and a newline, or a mark. */
void pkt_line(struct buf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
void pkt_mark(struct buf *out, enum pkt_kind kind);

/* Appends a server's message to `out`, cleaned: control characters become blanks, and bytes that
 * are not UTF-8 become '?'. */
void peer_words(struct buf *out, struct str words);

/* Reads the bytes of side-band 1. The reader ends at the flush. Progress (band 2) is counted and
 * dropped. An error of the server (band 3) becomes ERR_PEER with PEER_SAYS and the server's
 * message. An empty packet of band 1 is a keep-alive. If the stream ends before the flush, the
 * result is ERR_CLOSED. */
struct band_reader {
    struct reader reader;
    struct pkt_in *in;    /* borrowed */
    struct str rest;      /* unread bytes of the current packet */
    uint64_t progress;    /* bytes of band 2 so far */
    uint64_t idle_max_ms; /* longest time without a byte of band 1; 0: no limit */
    uint64_t idle_since_ms;
    bool ended;
};
void band_reader_init(struct band_reader *r, struct pkt_in *in, uint64_t idle_max_ms);

#endif
