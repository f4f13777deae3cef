#define _GNU_SOURCE
#include "store/touch.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

/* Where to continue after a SIGBUS, while this thread is in hf_touch. Its address is fixed when the
 * program starts, so that the handler can read it at any moment. */
static _Thread_local sigjmp_buf *volatile back __attribute__((tls_model("initial-exec")));

static struct sigaction before;

static void on_bus(int signal, siginfo_t *info, void *context)
{
    if (back)
        siglongjmp(*back, 1);
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else {
        /* Not ours: restore the default, so that the instruction runs again and ends the process,
         * as it would without us. A signal that was sent has no instruction: raise it. */
        struct sigaction normal;
        memset(&normal, 0, sizeof normal);
        normal.sa_handler = SIG_DFL;
        sigaction(signal, &normal, NULL);
        if (info->si_code <= 0)
            raise(signal);
    }
}

static int install(void)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_bus;
    /* NODEFER: siglongjmp does not restore the signal mask, and restoring it each time would cost a
     * system call. */
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL) == 0 ? 0 : -errno;
}

int hf_touch_ready(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction now;
    pthread_mutex_lock(&lock);
    int error = sigaction(SIGBUS, NULL, &now) == 0 ? 0 : -errno;
    if (!error && !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus)) {
        before = now;
        error = install();
    }
    pthread_mutex_unlock(&lock);
    return error;
}

void hf_touch_unblock(void)
{
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
}

int hf_touch(const unsigned char *data, size_t size)
{
    enum { PAGE = 4096 }; /* the smallest page of any machine */
    sigjmp_buf here;
    if (size == 0)
        return 0;
    if (sigsetjmp(here, 0) != 0) {
        back = NULL;
        return -EIO;
    }
    back = &here;
    const volatile unsigned char *p = data;
    const volatile unsigned char *last = data + size - 1;
    (void)*p;
    for (p = data + (PAGE - (uintptr_t)data % PAGE); p <= last; p += PAGE)
        (void)*p;
    back = NULL;
    return 0;
}
