/* stream.h: read and write on a non-blocking socket, plain or with TLS, with one contract. */
#ifndef HF_NET_STREAM_H
#define HF_NET_STREAM_H

#include "net/tls.h"

struct hf_stream {
    int fd;                  /* owned; -1: closed */
    struct hf_tls_conn *tls; /* owned; NULL: plain */
    /* What the last read or write that returned EAGAIN waits for: with TLS, a read may need a
     * write, and the other way round. */
    bool read_wants_write, write_wants_read;
};

/* Returns the bytes moved; 0 (read): the peer sends nothing more; or -1 and errno. EAGAIN: wait
 * until the socket is readable (read) or writable (write), or as the fields above say, and call
 * again; a write needs the same bytes again, and more may follow them. Any other errno: the stream
 * is broken for good. With TLS that is ECONNRESET, and hf_tls_failure has the reason. No signal is
 * raised when the peer is gone. data: borrowed (read: out). size: not 0. */
ssize_t hf_stream_read(struct hf_stream *stream, void *data, size_t size);
ssize_t hf_stream_write(struct hf_stream *stream, const void *data, size_t size);
/* Are there bytes to read that epoll and poll do not report? */
static inline bool hf_stream_pending(const struct hf_stream *stream)
{
    return stream->tls && hf_tls_pending(stream->tls);
}
/* Tell the peer, without waiting, that nothing more is written. Read what it still sends from the
 * socket itself, and drop it. False: the socket is broken. */
bool hf_stream_finish(struct hf_stream *stream);
/* Close it. Does nothing if it is closed. */
void hf_stream_close(struct hf_stream *stream);

#endif
