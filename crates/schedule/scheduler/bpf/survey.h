/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts beyond the decisions: latencies, switches, and which groups ran at the same time. */
#ifndef WORKAHEAD_SURVEY_H
#define WORKAHEAD_SURVEY_H

#include "shares.h"

/* Buckets that grow by a quarter of a power of two. */
static __always_inline u32 bucket_of(u64 value)
{
	u64 rest = value;
	u32 power = 0;

	if (value < 4)
		return value;
	if (rest >> 32) { power += 32; rest >>= 32; }
	if (rest >> 16) { power += 16; rest >>= 16; }
	if (rest >> 8) { power += 8; rest >>= 8; }
	if (rest >> 4) { power += 4; rest >>= 4; }
	if (rest >> 2) { power += 2; rest >>= 2; }
	if (rest >> 1) power += 1;
	return (power - 1) * 4 + ((value >> (power - 2)) & 3);
}

/* Whose waits are counted: threads of the normal class and of ours. */
static __always_inline bool counts(struct task_struct *p)
{
	return !(p->flags & PF_KTHREAD) && p->prio >= MAX_RT_PRIO;
}

static __always_inline void note_ready(struct task_struct *p, bool woken)
{
	struct task *task = counts(p) ? task_made(p) : NULL;

	if (!task)
		return;
	task->ready_at = bpf_ktime_get_ns();
	task->woken_at = woken ? task->ready_at : 0;
}

static __always_inline void note_run(struct stats *stats, struct task_struct *p, s32 me)
{
	struct task *task = counts(p) ? task_of(p) : NULL;
	u64 wait;

	if (!task)
		return;
	stats->migrations += task->ran_on && task->ran_on != (u32)me + 1;
	task->ran_on = me + 1;
	if (!task->ready_at)
		return;
	wait = bpf_ktime_get_ns() - task->ready_at;
	if ((s64)wait < 0)
		wait = 0;
	if (wait > stats->wait_max_ns)
		stats->wait_max_ns = wait;
	if (task->woken_at) {
		stats->latency[bucket_of(wait) & (BUCKETS - 1)]++;
		stats->latency_ns += wait;
	}
	task->ready_at = 0;
}

/* A thread leaves the CPU: waits to run again, or will be woken up. */
static __always_inline void note_leave(struct task_struct *p, bool runnable)
{
	struct task *task;

	if (runnable) {
		note_ready(p, false);
		return;
	}
	task = counts(p) ? task_of(p) : NULL;
	if (task)
		task->ready_at = 0;
}

static __always_inline void note_scan(struct stats *stats, u32 scanned)
{
	stats->scanned += scanned;
	stats->scans[scanned < SCAN_BUCKETS ? scanned : SCAN_BUCKETS - 1]++;
}

/* Between two switches on either of them, two CPUs run what they ran: that time is a pair's, and it
 * is booked at the later switch. */
static __always_inline void note_pairs(struct stats *stats, struct cpu *here, u32 me,
				      struct settings *set, u64 now)
{
	struct role *mine = role_of(me), *theirs;
	struct cpu *there;
	u64 since;
	bool set_of;
	u32 i;

	bpf_for(i, 0, set->cpus) {
		there = i == me ? NULL : cpu_of(i);
		if (!there || !there->group)
			continue;
		since = there->switched_at > here->switched_at ? there->switched_at
							       : here->switched_at;
		if ((s64)(now - since) <= 0)
			continue;
		theirs = role_of(i);
		set_of = mine && theirs && mine->role && theirs->role &&
			 mine->group == theirs->group;
		stats->pair_ns += now - since;
		if (set_of)
			stats->set_pair_ns += now - since;
		if (there->group != here->group)
			continue;
		stats->same_pair_ns += now - since;
		if (set_of)
			stats->same_set_pair_ns += now - since;
	}
}

static __always_inline void note_switch(struct task_struct *prev, struct task_struct *next,
					bool runnable)
{
	s32 me = bpf_get_smp_processor_id();
	struct settings *set = the_settings();
	struct stats *stats = stats_of(me);
	struct cpu *here = cpu_of(me);
	u64 group, before, now;

	if (!set || !stats || !here)
		return;
	group = group_of(next, set);
	before = group_of(prev, set);
	stats->switches++;
	note_leave(prev, runnable);
	note_run(stats, next, me);
	if (group && before) {
		stats->user_switches++;
		stats->same_switches += group == before;
	}
	if (set->survey) {
		now = bpf_ktime_get_ns();
		if (here->group)
			note_pairs(stats, here, me, set, now);
		here->switched_at = now;
	}
	here->group = group;
}

#endif
