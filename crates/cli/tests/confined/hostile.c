/* DuckDB's library as a defect of it would have it: when a database is opened, it does what somebody
 * would do who can run code in the process, and writes down how far that went. Everything else is
 * the library that this one is linked with. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *record;
static const char *victim, *place;

static void tried(const char *what, long result) {
  fprintf(record, "%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
  fflush(record);
}

static const char *beside(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s.%s", victim, name);
  return path;
}

static void *in_a_thread(void *unused) {
  tried("read it in a thread", open(victim, O_RDONLY));
  return unused;
}

static void attack(void) {
  char path[4096];
  int pair[2];
  int parent = getppid();
  tried("read a file", open(victim, O_RDONLY));
  tried("write to a file", open(victim, O_WRONLY));
  tried("truncate a file", truncate(victim, 0));
  tried("make a file", open(beside("made"), O_CREAT | O_WRONLY, 0600));
  tried("make a directory", mkdir(beside("directory"), 0700));
  tried("link a file", link(victim, beside("link")));
  tried("rename a file", rename(victim, beside("renamed")));
  tried("remove a file", unlink(victim));
  tried("change its mode", chmod(victim, 0777));
  snprintf(path, sizeof path, "%s.tool", place);
  tried("make a file that runs as its owner", open(path, O_CREAT | O_WRONLY, 04755));
  tried("change its owner", lchown(victim, 0, 0));
  tried("change its times", utimensat(AT_FDCWD, victim, NULL, 0));
  tried("add a device", mknod(beside("device"), S_IFCHR | 0600, 259));
  int program = open("/proc/self/exe", O_RDONLY);
  tried("let others write to a program", fchmod(program, 04757));
  tried("have nobody run it", fchmod(program, 0));
  tried("open the terminal to others", fchmod(2, 0644));
  tried("empty what it may read", open("/proc/self/exe", O_RDONLY | O_TRUNC));
  tried("cut the command's log", ftruncate(2, 0));
  tried("write over it", fcntl(2, F_SETFL, 0));
  tried("write over what was written", pwrite(2, "x", 1, 0));
  tried("go back in it", lseek(2, 0, SEEK_SET));
  tried("have it as memory", mmap(NULL, 1, PROT_READ, MAP_SHARED, 2, 0) == MAP_FAILED ? -1 : 0);
  tried("read what was written", pread(2, path, 1, 0));
  tried("lock it", flock(2, LOCK_EX | LOCK_NB));
  tried("copy over it", copy_file_range(program, NULL, 2, NULL, 1, 0));
  tried("shut what the command writes to", shutdown(2, SHUT_RDWR));
  tried("hold it by another number", dup(2));
  tried("read a secret of the environment", getenv("SECRET") == NULL ? (errno = EACCES, -1) : 0);
  const char *library = getenv("WORKAHEAD_LIBRARY");
  tried("write to the next command's library", open(library, O_WRONLY));
  tried("replace it", rename(library, victim));
  tried("put one beside it", open(strcat(strcpy(path, library), ".x"), O_CREAT | O_WRONLY, 0600));
  tried("open a socket", socket(AF_UNIX, SOCK_STREAM, 0));
  tried("open an internet socket", socket(AF_INET, SOCK_STREAM, 0));
  tried("open internet sockets in pairs", socketpair(AF_INET, SOCK_STREAM, 0, pair));
  tried("open datagram sockets", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  tried("signal the command", kill(parent, 0));
  snprintf(path, sizeof path, "/proc/%d/environ", parent);
  int environment = open(path, O_RDONLY);
  /* Some kernels let it be opened, and have nothing in it. */
  if (environment >= 0 && read(environment, path, 1) < 1) environment = -1, errno = EACCES;
  tried("read the command's environment", environment);
  snprintf(path, sizeof path, "/proc/%d/mem", parent);
  tried("open the command's memory", open(path, O_RDWR));
  tried("trace the command", syscall(SYS_ptrace, 0x4206 /* seize */, parent, 0, 0));
  struct rlimit none = {0, 0};
  tried("end the command by a limit", prlimit(parent, RLIMIT_CPU, &none, NULL));
  tried("slow the command down", setpriority(PRIO_PROCESS, parent, 19));
  tried("slow all of a user's down", setpriority(PRIO_USER, 0, 7));
  tried("join the command's group", setpgid(0, getpgid(parent)));
  tried("be a session", setsid());
  tried("have Ctrl-C be a letter", ioctl(2, TCSETS, path));
  long flags = 0;
  tried("change a program's flags", ioctl(program, 0x40086602, &flags));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  tried("keep the command to a CPU", sched_setaffinity(parent, sizeof cpus, &cpus));
  tried("share memory with others", shmget(IPC_PRIVATE, 1, 0600));
  tried("leave messages for others", msgget(IPC_PRIVATE, 0600));
  tried("leave a process behind", fork());
  tried("the same by clone", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  tried("have a user name space", syscall(SYS_clone, SIGCHLD | 0x10000000, 0, 0, 0, 0));
  tried("outlive the command", prctl(PR_SET_PDEATHSIG, 0));
  tried("take the terminal", ioctl(2, TIOCSPGRP, &program));
  tried("type into the terminal", ioctl(2, TIOCSTI, "x"));
  tried("set up io_uring", syscall(SYS_io_uring_setup, 1, beside("none")));
  tried("load a BPF program", syscall(SYS_bpf, 0, NULL, 0));
  tried("leave the name spaces", syscall(SYS_unshare, 0x10000000));
  tried("mount", syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL));
  tried("change the host's name", sethostname("x", 1));
  tried("load a module", syscall(SYS_finit_module, program, "", 0));
  tried("have signals sent", fcntl(0, F_SETOWN, parent));
  tried("have memory that is a file", syscall(SYS_memfd_create, "x", 0));
  tried("read the command's memory", syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0));
  tried("hold the command", syscall(SYS_pidfd_open, parent, 0));
  tried("listen to counters", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  tried("run a program in its place", execl("/bin/true", "true", NULL));
  tried("write a kernel setting", open("/proc/sys/kernel/core_pattern", O_WRONLY));
  tried("write to a CPU's settings", open("/sys/devices/system/cpu/smt/control", O_WRONLY));
  pthread_t thread;
  pthread_create(&thread, NULL, in_a_thread, NULL);
  pthread_join(thread, NULL);
  char command[8192];
  snprintf(command, sizeof command, "cat '%s' || echo x > '%s'", victim, beside("by-a-program"));
  int status = system(command);
  errno = EACCES;
  tried("have a program do it", status == 0 ? 0 : -1);
}

/* Where programs may be started: one that stays, which only the command can end. */
static void stay(void) {
  int stays = fork();
  if (stays == 0) {
    for (;;) pause();
  }
  fprintf(record, "%d\n", stays);
  fclose(record);
}

typedef int Open(const char *, void **, void *, char **);

int duckdb_open_ext(const char *path, void **database, void *config, char **error) {
  if (record == NULL) {
    char name[8192];
    snprintf(name, sizeof name, "%s.tried", path);
    place = path;
    victim = getenv("WORKAHEAD_VICTIM");
    record = fopen(name, "w");
    if (record == NULL || victim == NULL) return 1;
    getenv("WORKAHEAD_STAYS") != NULL ? stay() : attack();
  }
  Open *theirs = (Open *)dlsym(RTLD_NEXT, "duckdb_open_ext");
  return theirs(path, database, config, error);
}
