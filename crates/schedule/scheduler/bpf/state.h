/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State: of each task its vruntime, of each CPU the group it ran last.
 *
 * A queue's vruntimes mean something against the least of that queue only, as in CFS: a task keeps
 * the CPU they belong to (`home`) and is moved along when it changes queues. So is the time for which
 * it was passed over.
 */
#ifndef WORKAHEAD_STATE_H
#define WORKAHEAD_STATE_H

#include "kernel.h"
#include "itas.h"
#include "wire.h"

#define NOWHERE (-1)

struct task {
	u64 vruntime;
	u64 queued_at; /* ns; 0 when not in a queue */
	u64 slack;     /* ns for which others may pass it over, where `hurried` */
	u64 passed_at; /* its queue's `passed` when it woke up */
	u64 turn;      /* ns; how long it runs, a mean of its last turns */
	u64 began_at;  /* ns; its turn */
	u64 busy_in;   /* control group in which it is counted as runnable, 0 for none */
	u64 counted;   /* weight by which */
	u64 burdens;   /* CPU whose load it is part of, and how much of it; see burden() */
	u64 weight;    /* in the tree of control groups, when it ran last; 0 before that */
	/* Under any scheduler: */
	u64 ready_at; /* ns; since when it waits to run, 0 when it doesn't */
	u64 woken_at; /* ns; 0 when it didn't wake up or has run since */
	s32 home;      /* CPU that the vruntime belongs to, NOWHERE before the first */
	u32 hurried;   /* it woke up, and is passed over no further than its slack goes */
	u32 ran_on;    /* CPU on which it ran last, and 1; 0 before the first; any scheduler */
};

struct cpu {
	u64 least;    /* vruntimes of this queue start here; never goes back */
	u64 own;      /* group of the thread that ran last */
	u64 bonus;    /* that group's */
	u64 started;  /* ns; until when the running thread is charged */
	u64 vruntime; /* of the running thread, at `started` */
	u64 weight;   /* of the running thread in the tree of control groups, 0 when none of ours runs */
	u64 load;     /* weights of the threads that run or wait here */
	u64 passed;   /* ns; how long threads ran here before others of the queue, all together */
	u64 balanced_at;
	u64 served_at;	/* ns; when it decided last */
	u64 oldest;	 /* ns; nobody has been in its queue for longer */
	u32 count; /* agg_count of `own` */
	u32 taken; /* by a higher scheduling class */
	u32 limited; /* a control group of the running thread has a quota */
	u32 relief;  /* this decision looks at all of the queue */
	u32 passing, passes; /* the running thread was chosen before others, and the next one is */
	/* One decision's notes. Here and not on the stack, so that the verifier doesn't follow every
	 * value that they can have around the loop. */
	struct itas_view view;
	struct itas_thread shown;
	struct itas_tunables by;
	struct itas_choice choice;
	u32 as, publishes; /* role, and whose ia_mm */
	u64 longest;	   /* wait of a queued thread, ns; 0 when that isn't looked at */
	s32 head, member, companion; /* pids; 0 is the thread that ran last */
	u32 scanned;
	/* For the survey: who runs, since when; all scheduling classes. */
	u64 group;
	u64 switched_at;
};

struct published {
	u64 group;
	u64 bonus;
};

struct published published[GROUPS_MAX]; /* ia_mm; masters write, slaves read, nobody waits */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct settings);
} wa_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct role);
} wa_roles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} wa_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} wa_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} wa_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ended);
} wa_ended SEC(".maps");

/* Bonus of a group by its number, or of a cgroup by its id, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} wa_bonuses SEC(".maps");

/* Tag of a process by its pid: what its children and threads have, too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u64);
} wa_tags SEC(".maps");

static __always_inline struct settings *the_settings(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&wa_settings, &zero);
}

static __always_inline struct cpu *cpu_of(s32 cpu)
{
	return bpf_map_lookup_elem(&wa_cpus, &cpu);
}

static __always_inline struct stats *stats_of(s32 cpu)
{
	return bpf_map_lookup_elem(&wa_stats, &cpu);
}

static __always_inline struct task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&wa_tasks, p, 0, 0);
}

static __always_inline struct role *role_of(s32 cpu)
{
	return bpf_map_lookup_elem(&wa_roles, &cpu);
}

static __always_inline u64 cgroup_of(struct task_struct *p)
{
	return p->cgroups->dfl_cgrp->kn->id;
}

/* Where the thread is none of a scheduler's that has seen it begin. */
static __always_inline struct task *task_made(struct task_struct *p)
{
	return bpf_task_storage_get(&wa_tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The group of a thread, 0 for none. No number is given twice while the system runs: address spaces
 * and cgroups are numbered by the kernel, and a parent is its pid with its time of birth. A tag goes
 * before all of them. */
__noinline u64 group_of(struct task_struct *p __arg_trusted, struct settings *set __arg_nonnull)
{
	struct task_struct *parent;
	u32 key = set->key, pid = p->tgid;
	struct mm_struct *mm;
	u64 *tag;

	if (p->flags & PF_KTHREAD)
		return 0;
	tag = set->tags ? bpf_map_lookup_elem(&wa_tags, &pid) : NULL;
	if (tag)
		return *tag;
	if (key == WIRE_TAG)
		return 0;
	if (key == WIRE_CGROUP)
		return cgroup_of(p);
	if (key == WIRE_PARENT) {
		parent = p->group_leader->real_parent;
		if (parent->tgid <= 2)
			return 0;
		return parent->group_leader->start_boottime << 22 ^ parent->tgid;
	}
	mm = p->mm;
	if (!mm)
		return 0;
	if (bpf_core_field_exists(mm->context.ctx_id))
		return mm->context.ctx_id;
	/* Where address spaces have no number: the leader's birth tells one use of memory from the
	 * next. */
	return (u64)mm ^ p->group_leader->start_boottime << 16;
}

/* Moves a task's vruntime to the queue of another CPU; a new one starts a slice behind, as in CFS,
 * so that forking gains nothing. */
static __always_inline void settle(struct task *task, s32 cpu, struct cpu *here, u64 slice_ns)
{
	struct cpu *there;

	if (task->home == cpu)
		return;
	there = task->home == NOWHERE ? NULL : cpu_of(task->home);
	if (there) {
		task->vruntime += here->least - there->least;
		task->passed_at += here->passed - there->passed;
	} else {
		task->vruntime = here->least + slice_ns;
		task->passed_at = here->passed;
	}
	task->home = cpu;
}

static __always_inline void advance(struct cpu *cpu, u64 vruntime)
{
	if (itas_before(cpu->least, vruntime))
		cpu->least = vruntime;
}

/* The turn of a thread is over: the mean moves by a quarter. */
static __always_inline void note_turn(struct task *task, u64 now)
{
	u64 turn = now - task->began_at;

	if (!task->began_at || (s64)turn < 0)
		return;
	task->turn = task->turn ? (3 * task->turn + turn) / 4 : turn;
	task->began_at = 0;
}

#endif
