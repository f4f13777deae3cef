/* stream.h: reading and writing on a socket, plain or with TLS, by one contract. The socket
 * never blocks. */
#ifndef HF_NET_STREAM_H
#define HF_NET_STREAM_H

#include "net/tls.h"

struct hf_stream {
    int fd;                  /* owned; -1: closed */
    struct hf_tls_conn *tls; /* owned; NULL: plain */
    /* What the last read, or write, that gave EAGAIN waits for: with TLS either may need the
     * other. */
    bool read_wants_write, write_wants_read;
};

/* Bytes moved; 0 (read): the other end sends nothing more; or -1 and errno. EAGAIN: wait until
 * the socket is readable (read) or writable (write), or what the fields above say, and call
 * again; a write with the same bytes, behind which there may be more now. Anything else: the
 * stream is broken, and stays so. With TLS that is ECONNRESET, and hf_tls_failure knows more. No
 * signal is raised when the other end is gone. data: borrowed (read: out). size: not 0. */
ssize_t hf_stream_read(struct hf_stream *stream, void *data, size_t size);
ssize_t hf_stream_write(struct hf_stream *stream, const void *data, size_t size);
/* Are there bytes to read of which epoll and poll do not know? */
static inline bool hf_stream_pending(const struct hf_stream *stream)
{
    return stream->tls && hf_tls_pending(stream->tls);
}
/* Nothing more is written: tell the other end, without waiting. What it still sends is for
 * nobody: read the socket itself, and throw that away. False: the socket is broken. */
bool hf_stream_finish(struct hf_stream *stream);
/* Close it, also if it is closed. */
void hf_stream_close(struct hf_stream *stream);

#endif
