/* SPDX-License-Identifier: GPL-2.0-only */
/* Load balance: idle CPUs take from any queue, busy ones now and then from one whose threads weigh
 * more, and from one that nobody serves, since a higher scheduling class has the CPU or it is going
 * away. */
#ifndef WORKAHEAD_BALANCE_H
#define WORKAHEAD_BALANCE_H

#include "survey.h"

/* Slices after which a queue is said not to be served. */
#define UNSERVED_SLICES 8
/* More than any queue weighs: one that is not served goes first. */
#define UNSERVED (1ULL << 56)
/* Loads that differ by less than this part are alike: weights in control groups change with all that
 * wakes up. */
#define ALIKE 16

/* The allowed CPU with the least load, for new threads: nobody has run with them yet. */
static __always_inline s32 least_busy(struct task_struct *p, struct settings *set,
				      s32 otherwise)
{
	u64 least = ~0ULL;
	s32 best = otherwise;
	struct cpu *cpu;
	u32 i;

	bpf_for(i, 0, set->cpus) {
		cpu = cpu_of(i);
		if (!cpu || cpu->taken || !bpf_cpumask_test_cpu(i, p->cpus_ptr))
			continue;
		if (cpu->load < least) {
			least = cpu->load;
			best = i;
		}
	}
	return best;
}

static __always_inline bool steal(s32 me, struct stats *stats, struct settings *set)
{
	u32 i, from;

	bpf_for(i, 1, set->cpus) {
		from = (me + i) % set->cpus;
		if (scx_bpf_dsq_nr_queued(from) > 0 && take_first(from)) {
			stats->stolen++;
			return true;
		}
	}
	return false;
}

/* Moves the first thread that may come and weighs less than `most` from one queue to this CPU's. */
static __always_inline bool pull(s32 me, struct cpu *cpu, s32 from, u64 most, struct settings *set)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	struct task *task;
	bool moved = false;

	cpu->scanned = 0;
	bpf_iter_scx_dsq_new(&it, from, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (cpu->scanned++ >= set->scan_max)
			break;
		task = task_of(p);
		if (!task || burden_weight(task->burdens) >= most ||
		    !bpf_cpumask_test_cpu(me, p->cpus_ptr))
			continue;
		settle(task, me, cpu, set->slice_ns);
		if (task->queued_at && itas_before(task->queued_at, cpu->oldest))
			cpu->oldest = task->queued_at;
		moved = move_at(&it, p, me, task->vruntime);
		if (moved)
			burden(task, me, task->burdens);
		break;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/* Gives a CPU the first thread of its queue that has waited long without a call of `dispatch`. The
 * kernel makes none for a CPU that is going away, which may wait for a thread that can run nowhere
 * else: one that was preempted as it read under RCU, say. */
static __always_inline void relieve(s32 from, struct stats *stats, struct settings *set, u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	struct cpu *cpu = cpu_of(from);
	struct task *task;
	bool moved = false;

	if (!cpu || cpu->taken)
		return;
	bpf_iter_scx_dsq_new(&it, from, 0);
	p = bpf_iter_scx_dsq_next(&it);
	task = p ? task_of(p) : NULL;
	if (task && task->queued_at &&
	    (s64)(now - task->queued_at) > (s64)set->slice_ns * UNSERVED_SLICES)
		moved = move(&it, p, SCX_DSQ_LOCAL_ON | from, set->slice_ns);
	bpf_iter_scx_dsq_destroy(&it);
	if (moved) {
		stats->balanced++;
		scx_bpf_kick_cpu(from, 0);
	}
}

static __always_inline void balance(s32 me, struct cpu *cpu, struct stats *stats,
				    struct settings *set, u64 now)
{
	u64 most = cpu->load + cpu->load / ALIKE, load;
	struct cpu *other;
	s32 from = NOWHERE;
	u32 i;

	if ((s64)(now - cpu->balanced_at) < (s64)set->balance_ns)
		return;
	cpu->balanced_at = now;
	bpf_for(i, 0, set->cpus) {
		other = i == (u32)me ? NULL : cpu_of(i);
		if (!other || scx_bpf_dsq_nr_queued(i) <= 0)
			continue;
		load = other->load;
		if ((s64)(now - other->served_at) > (s64)set->slice_ns * UNSERVED_SLICES)
			load += UNSERVED;
		if (load > most) {
			most = load;
			from = i;
		}
	}
	if (from == NOWHERE)
		return;
	/* A thread that weighs less than the difference makes it smaller. */
	if (pull(me, cpu, from, most - cpu->load, set))
		stats->balanced++;
	else if (most >= UNSERVED)
		relieve(from, stats, set, now);
}

#endif
