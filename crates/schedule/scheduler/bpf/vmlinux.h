/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types that the scheduler uses: names and members only, since libbpf looks up
 * where they lie in the kernel that runs (CO-RE). Written by hand in place of the 2.7 MB that
 * `bpftool btf dump file /sys/kernel/btf/vmlinux format c` gives, so that no kernel is needed to
 * build. Constants are those of 6.12 to 7.2, where they are the same.
 */
#ifndef WORKAHEAD_VMLINUX_H
#define WORKAHEAD_VMLINUX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

#define CLOCK_MONOTONIC 1
#define ENOMEM 12
#define MAX_RT_PRIO 100
#define PF_KTHREAD 0x00200000
#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_DSQ_LOCAL_ON 0xc000000000000000ULL
#define SCX_ENQ_WAKEUP 1ULL
#define SCX_KICK_IDLE 1ULL
#define SCX_KICK_PREEMPT 2ULL
#define SCX_OPS_ENQ_LAST 2ULL
#define SCX_TASK_QUEUED 1U
#define SCX_WAKE_FORK 4ULL

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {};
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
typedef struct {
	u64 ctx_id;
} mm_context_t;
struct mm_struct {
	mm_context_t context;
};
struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};
struct cfs_bandwidth {
	s64 period;
	u64 quota;
};
struct task_group {
	unsigned long shares;
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};
struct task_struct {
	unsigned int flags;
	int prio;
	struct sched_ext_entity scx;
	s32 pid;
	s32 tgid;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_boottime;
	struct css_set *cgroups;
	struct task_group *sched_task_group;
	const struct cpumask *cpus_ptr;
	int nr_cpus_allowed;
};
struct scx_init_task_args {
	bool fork;
};
struct scx_exit_task_args {
	bool cancelled;
};
struct scx_cpu_acquire_args {};
struct scx_cpu_release_args {};
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

/* The operations that are filled in; libbpf leaves the kernel's others empty. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

#endif
