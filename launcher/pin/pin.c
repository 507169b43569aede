/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the ports on which a process listens to a range: TRAINYARD_PIN_PORTS=first-last, by LD_PRELOAD.
 *
 * Frameworks such as gloo let the kernel choose the ports of their data connections (bind to port 0), and have no option
 * for it; a firewall can only be narrow when these ports are known. Who binds to port 0 gets the first free port of the
 * range. Explicit ports are left alone: who asks for one has told it to others.
 *
 * Build: gcc -O2 -Wall -shared -fPIC -o libpin.so pin.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int (*bind_call)(int, const struct sockaddr *, socklen_t);
typedef int (*listen_call)(int, int);

static atomic_uint turns;
static atomic_flag told = ATOMIC_FLAG_INIT;

static int range(unsigned *first, unsigned *size) {
    const char *text = getenv("TRAINYARD_PIN_PORTS");
    unsigned low, high;
    if (text == NULL || sscanf(text, "%u-%u", &low, &high) != 2 || low == 0 || high < low || high > 65535)
        return 0;
    *first = low;
    *size = high - low + 1;
    return 1;
}

static in_port_t *port_of(struct sockaddr *address, socklen_t length) {
    if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in))
        return &((struct sockaddr_in *)address)->sin_port;
    if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))
        return &((struct sockaddr_in6 *)address)->sin6_port;
    return NULL;
}

static int is_stream(int socket) {
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/* Processes of one node begin at different places, so that they seldom want the same port. */
static unsigned begin(unsigned size) {
    return ((unsigned)getpid() * 31u + atomic_fetch_add(&turns, 1u)) % size;
}

static void complain(unsigned first, unsigned size) {
    char line[160];
    if (atomic_flag_test_and_set(&told))
        return;
    int length = snprintf(line, sizeof line, "pin: no port of %u-%u is free; the firewall may stop what is used instead\n",
                          first, first + size - 1);
    if (length > 0 && write(2, line, (size_t)length) < 0)
        return;
}

static int bind_within(bind_call really, int socket, const struct sockaddr_storage *wanted, socklen_t length,
                       unsigned first, unsigned size, unsigned from) {
    int one = 1, kept = 0;
    socklen_t kept_length = sizeof kept;
    struct sockaddr_storage address = *wanted;
    in_port_t *port = port_of((struct sockaddr *)&address, length);

    /* A port whose last connections are only waiting to be forgotten is as good as free. */
    getsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &kept, &kept_length);
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    for (unsigned turn = 0; turn < size; turn++) {
        *port = htons((in_port_t)(first + (from + turn) % size));
        if (really(socket, (struct sockaddr *)&address, length) == 0)
            return 0;
        if (errno != EADDRINUSE && errno != EACCES)
            break;
    }
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &kept, sizeof kept);
    return -1;
}

int bind(int socket, const struct sockaddr *address, socklen_t length) {
    bind_call really = (bind_call)dlsym(RTLD_NEXT, "bind");
    unsigned first, size;
    struct sockaddr_storage copy;

    if (address == NULL || length > sizeof copy || !range(&first, &size) || !is_stream(socket))
        return really(socket, address, length);
    memcpy(&copy, address, length);
    in_port_t *port = port_of((struct sockaddr *)&copy, length);
    if (port == NULL || *port != 0)
        return really(socket, address, length);
    if (bind_within(really, socket, &copy, length, first, size, begin(size)) == 0)
        return 0;
    if (errno == EADDRINUSE || errno == EACCES)
        complain(first, size);
    return really(socket, address, length);
}

/*
 * Two may have bound one port before either listens; then the second cannot listen. It gets another socket, on another
 * port, under the same number. What it had set on the socket before is set again as far as it matters here.
 */
static int listen_elsewhere(listen_call really, int old, int backlog, unsigned first, unsigned size) {
    bind_call really_bind = (bind_call)dlsym(RTLD_NEXT, "bind");
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    if (getsockname(old, (struct sockaddr *)&address, &length) != 0)
        return -1;
    in_port_t *port = port_of((struct sockaddr *)&address, length);
    if (port == NULL || ntohs(*port) < first || ntohs(*port) >= first + size)
        return -1;
    unsigned from = ntohs(*port) - first;
    for (unsigned turn = 1; turn <= size; turn++) {
        int other = socket(address.ss_family, SOCK_STREAM, 0);
        if (other < 0)
            return -1;
        if (bind_within(really_bind, other, &address, length, first, size, from + turn) == 0 &&
            really(other, backlog) == 0) {
            int flags = fcntl(old, F_GETFL), inherited = fcntl(old, F_GETFD);
            fcntl(other, F_SETFL, flags);
            int done = dup3(other, old, (inherited & FD_CLOEXEC) ? O_CLOEXEC : 0);
            close(other);
            return done < 0 ? -1 : 0;
        }
        close(other);
    }
    errno = EADDRINUSE;
    return -1;
}

int listen(int socket, int backlog) {
    listen_call really = (listen_call)dlsym(RTLD_NEXT, "listen");
    unsigned first, size;

    int done = really(socket, backlog);
    if (done == 0 || errno != EADDRINUSE || !range(&first, &size) || !is_stream(socket))
        return done;
    return listen_elsewhere(really, socket, backlog, first, size);
}
