/* Prints what a process is born with, one fact a line. A C program, because interpreters change signals and descriptors
   before the first line of a script. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

static void print_environment(void) {
    for (char **entry = environ; *entry; entry++) {
        int name = strcspn(*entry, "=");
        printf("env %.*s: %s\n", name, *entry, (*entry)[name] ? *entry + name + 1 : "");
    }
}

static void print_limits(void) {
    static const char *names[] = {"cpu",  "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
                                  "memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"};
    for (int resource = 0; resource < 16; resource++) {
        struct rlimit limit;
        if (getrlimit(resource, &limit)) continue;
        printf("limit %s soft: %lld\n", names[resource], (long long)limit.rlim_cur);
        printf("limit %s hard: %lld\n", names[resource], (long long)limit.rlim_max);
    }
}

/* Lines of /proc/self/status that are a process's own and do not change by themselves. */
static void print_status(void) {
    static const char *wanted[] = {"Umask", "Uid", "Gid", "Groups", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
                                   "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                                   "Cpus_allowed", "Mems_allowed", "THP_enabled", "CoreDumping", NULL};
    char line[4096];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        int name = strcspn(line, ":");
        for (const char **each = wanted; *each; each++)
            if ((int)strlen(*each) == name && !strncmp(line, *each, name)) printf("status %.*s: %s", name, line, line + name + 2);
    }
    if (status) fclose(status);
}

static void print_file(const char *name, const char *path) {
    char line[4096];
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file)) printf("%s: %s", name, line);
    if (file) fclose(file);
}

/* Descriptors as `ls -l /proc/self/fd` shows them, without the one that lists them. */
static void print_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int fd = atoi(entry->d_name);
        char link[64], target[4096];
        if (entry->d_name[0] == '.' || fd == dirfd(folder)) continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        int flags = fcntl(fd, F_GETFL);
        printf("fd %d: %s%s%s%s\n", fd, target, (flags & O_ACCMODE) == O_RDONLY ? " read" : (flags & O_ACCMODE) == O_WRONLY ? " write" : " read write",
               flags & O_APPEND ? " append" : "", flags & O_NONBLOCK ? " nonblocking" : "");
    }
    if (folder) closedir(folder);
}

static void print_terminal(void) {
    for (int fd = 0; fd < 3; fd++) {
        printf("is fd %d a terminal: %s\n", fd, isatty(fd) ? "yes" : "no");
        struct winsize size;
        struct termios modes;
        if (!ioctl(fd, TIOCGWINSZ, &size)) printf("size of terminal %d: %d by %d\n", fd, size.ws_row, size.ws_col);
        if (!tcgetattr(fd, &modes))
            printf("modes of terminal %d: %x %x %x %x\n", fd, modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag);
    }
    int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC);
    printf("controlling terminal: %s\n", terminal >= 0 ? "yes" : "no");
    if (terminal >= 0) {
        printf("id of the foreground group: %d\n", tcgetpgrp(terminal));
        close(terminal);
    }
}

int main(int count, char **arguments) {
    char folder[4096];
    for (int i = 0; i < count; i++) printf("argument %d: %s\n", i, arguments[i]);
    print_environment();
    print_descriptors();
    print_limits();
    print_status();
    print_terminal();
    printf("folder: %s\n", getcwd(folder, sizeof folder) ? folder : "(none)");
    printf("niceness: %d\n", getpriority(PRIO_PROCESS, 0));
    printf("disk priority: %ld\n", syscall(SYS_ioprio_get, 1, 0));
    printf("scheduling policy: %d\n", sched_getscheduler(0));
    printf("personality: %x\n", personality(0xffffffff));
    printf("timer slack: %d\n", prctl(PR_GET_TIMERSLACK));
    int reaper = 0, death = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    prctl(PR_GET_PDEATHSIG, &death);
    printf("is a subreaper: %d\n", reaper);
    printf("parent death signal: %d\n", death);
    printf("dumpable: %d\n", prctl(PR_GET_DUMPABLE));
    printf("secure: %lu\n", getauxval(AT_SECURE));
    print_file("oom score adjustment", "/proc/self/oom_score_adj");
    print_file("core filter", "/proc/self/coredump_filter");
    printf("id of the process group: %d\n", getpgrp());
    printf("id of the session: %d\n", getsid(0));
    return 0;
}
