/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One decision: the queue is shown to the policy (itas.h), and its choice is carried out.
 *
 *   own queue ──see──► head, member, companion (pids) ──choose──► move to the CPU, or keep prev
 *                 at most scan_max, until ENOUGH
 */
#ifndef WORKAHEAD_DECIDE_H
#define WORKAHEAD_DECIDE_H

#include "survey.h"

/*
 * The policy's questions, as functions that the verifier takes on their own: without them it walks
 * each way through the policy times each way through what follows.
 */

/* Returns the pid that was chosen, 0 for the thread that ran last. */
__noinline int policy_choose(struct cpu *cpu __arg_nonnull)
{
	cpu->choice = itas_choose(&cpu->view, cpu->as, cpu->count, &cpu->by);
	return cpu->choice.pick == ITAS_MEMBER     ? cpu->member
	       : cpu->choice.pick == ITAS_COMPANION ? cpu->companion
						    : cpu->head;
}

/* Whether the thread is the one that has waited longest so far, and too long. */
static __always_inline bool overdue(struct cpu *cpu, struct settings *set, struct task *task,
				    u64 now)
{
	u64 wait;

	if (!task->queued_at)
		return false;
	wait = now - task->queued_at;
	if ((s64)wait < 0)
		return false;
	if (itas_before(task->queued_at, cpu->oldest))
		cpu->oldest = task->queued_at;
	if (wait <= set->patience_ns || wait <= cpu->longest)
		return false;
	cpu->longest = wait;
	return true;
}

/* A thread as the policy needs it. */
static __always_inline void describe(struct cpu *cpu, struct settings *set, struct task_struct *p,
				     struct task *task)
{
	cpu->shown.group = group_of(p, set);
	cpu->shown.slack = ITAS_UNHURRIED;
	cpu->shown.turn = 0;
	if (task && set->max_delay_ns)
		cpu->shown.turn = task->turn < set->slice_ns ? task->turn : set->slice_ns;
}

/* Shows a thread of the queue. */
__noinline int policy_see(struct cpu *cpu __arg_nonnull, struct settings *set __arg_nonnull,
			  struct task_struct *p __arg_trusted, u64 now)
{
	struct task *task = cpu->relief || set->max_delay_ns ? task_of(p) : NULL;
	u32 seen;

	describe(cpu, set, p, task);
	cpu->shown.vruntime = p->scx.dsq_vtime;
	if (task && task->hurried && set->max_delay_ns)
		cpu->shown.slack = task->slack - (cpu->passed - task->passed_at);
	seen = itas_see(&cpu->view, &cpu->shown, itas_reach(&cpu->by));
	if (seen & ITAS_HEAD && !cpu->longest)
		cpu->head = p->pid;
	if (seen & ITAS_MEMBER)
		cpu->member = p->pid;
	if (seen & ITAS_COMPANION)
		cpu->companion = p->pid;
	if (cpu->relief && task && overdue(cpu, set, task, now))
		cpu->head = p->pid;
	return seen;
}

/* Shows the thread that ran last, where it could go on. */
__noinline int policy_see_current(struct cpu *cpu __arg_nonnull, struct settings *set __arg_nonnull,
					  struct task_struct *p __arg_trusted)
{
	struct task *task = task_of(p);
	u32 seen;

	if (!task)
		return 0;
	describe(cpu, set, p, task);
	cpu->shown.vruntime = task->vruntime;
	seen = itas_see_current(&cpu->view, &cpu->shown, itas_reach(&cpu->by));
	if (seen & ITAS_HEAD)
		cpu->head = 0;
	if (seen & ITAS_COMPANION)
		cpu->companion = 0;
	return seen;
}

/* Takes a thread out of the queue whose control group has used up its quota. */
static __always_inline bool park(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				 struct stats *stats, u64 now)
{
	u64 until = parked_until(p, now);
	struct task *task = task_of(p);

	if (!until)
		return false;
	if (task) {
		task->queued_at = 0;
		burden(task, NOWHERE, 0);
	}
	stats->parked++;
	return move_at(it, p, PARKED, until);
}

/* Shows the CPU's queue. The iterator stays open: it moves the chosen thread. When somebody may
 * have waited too long, all of the queue is looked at, and again as long as somebody has: fair
 * queueing alone lets a thread wait until all others have caught up with it. */
static __always_inline void see_queue(struct bpf_iter_scx_dsq *it, struct cpu *cpu,
				      struct stats *stats, struct settings *set, u64 now)
{
	struct task_struct *p;
	u32 seen;

	cpu->relief = (s64)(now - cpu->oldest) > (s64)set->patience_ns;
	if (cpu->relief)
		cpu->oldest = now;
	cpu->longest = 0;
	while ((p = bpf_iter_scx_dsq_next(it))) {
		cpu->scanned++;
		if (quotas && park(it, p, stats, now)) {
			if (cpu->scanned >= set->scan_max)
				break;
			continue;
		}
		seen = policy_see(cpu, set, p, now);
		if ((seen & ITAS_ENOUGH) && !set->survey && !cpu->relief)
			break;
		if (cpu->scanned >= set->scan_max) {
			/* There may be more, who have waited for longer. */
			if (cpu->relief && !cpu->longest)
				cpu->oldest = now - set->patience_ns / 4 * 3;
			break;
		}
	}
	if (cpu->longest)
		cpu->view.have |= ITAS_OVERDUE;
}

static __always_inline void note_choice(struct stats *stats, struct cpu *cpu, u32 limit)
{
	bool chance = cpu->view.have & (ITAS_MEMBER | ITAS_COMPANION);
	u32 pick = cpu->choice.pick;

	stats->decisions++;
	stats->picked_head += pick & ITAS_HEAD;
	stats->picked_member += pick >> 1 & 1;
	stats->picked_companion += pick >> 2 & 1;
	stats->chances += chance;
	stats->taken += !(pick & ITAS_HEAD);
	stats->at_limit += chance & pick & !itas_under_limit(cpu->count, limit);
	stats->overdue += cpu->view.have >> 3 & 1;
	note_scan(stats, cpu->scanned);
}

/* Carries out a choice; false when the thread is gone by now. */
static __always_inline bool carry_out(struct bpf_iter_scx_dsq *it, s32 pid, u64 slice)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	bool moved;

	if (!p)
		return false;
	moved = move(it, p, SCX_DSQ_LOCAL, slice);
	bpf_task_release(p);
	return moved;
}

/* The state before a decision. */
static __always_inline void prepare(s32 me, struct cpu *cpu, struct settings *set)
{
	struct role *role = role_of(me);

	__builtin_memset(&cpu->view, 0, sizeof(cpu->view));
	cpu->scanned = 0;
	cpu->view.own = cpu->own;
	cpu->view.slack = ITAS_UNHURRIED;
	cpu->by.bonus = cpu->by.companion_bonus = cpu->bonus;
	cpu->by.limit = set->limit;
	cpu->as = role ? role->role : ITAS_ALONE;
	cpu->publishes = role ? role->group : 0;
	if (cpu->as == ITAS_SLAVE) {
		struct published *from = &published[cpu->publishes & (GROUPS_MAX - 1)];

		cpu->view.shared = *(volatile u64 *)&from->group;
		cpu->by.companion_bonus = *(volatile u64 *)&from->bonus;
	}
	/* A thread ahead of its share waits for the others to catch up. */
	if (set->max_delay_ns && cpu->by.bonus > set->max_delay_ns)
		cpu->by.bonus = set->max_delay_ns;
	if (set->max_delay_ns && cpu->by.companion_bonus > set->max_delay_ns)
		cpu->by.companion_bonus = set->max_delay_ns;
}

/* Effects of a decision: the count, and a master's published group. */
static __always_inline void conclude(struct cpu *cpu)
{
	struct published *to = &published[cpu->publishes & (GROUPS_MAX - 1)];

	cpu->count = itas_count_after(cpu->count, cpu->choice.count);
	if (cpu->choice.publish == ITAS_PUBLISH) {
		*(volatile u64 *)&to->bonus = cpu->bonus;
		*(volatile u64 *)&to->group = cpu->own;
	} else if (cpu->choice.publish == ITAS_WITHDRAW) {
		*(volatile u64 *)&to->group = 0;
	}
}

/* Decides for a CPU. `prev` is the thread that ran last where it could go on, or NULL. True when
 * somebody runs next. */
static __always_inline bool decide(s32 me, struct cpu *cpu, struct stats *stats,
				   struct settings *set, struct task_struct *prev)
{
	struct bpf_iter_scx_dsq it;
	bool done = false;
	u64 started = bpf_ktime_get_ns(), now = clock(), slice = set->slice_ns;
	s32 pid;

	prepare(me, cpu, set);
	bpf_iter_scx_dsq_new(&it, me, 0);
	see_queue(&it, cpu, stats, set, now);
	/* An overdue thread has no rival. */
	if (prev && !(cpu->view.have & ITAS_OVERDUE))
		policy_see_current(cpu, set, prev);

	pid = policy_choose(cpu);
	if (cpu->choice.turn < slice)
		slice = cpu->choice.turn;
	cpu->passes = cpu->choice.pick == ITAS_MEMBER || cpu->choice.pick == ITAS_COMPANION;
	if (cpu->choice.pick != ITAS_NOBODY) {
		note_choice(stats, cpu, set->limit);
		advance(cpu, cpu->view.head);
		if (pid) {
			done = carry_out(&it, pid, slice);
			stats->lost += !done;
		} else if (prev) {
			prev->scx.slice = slice;
			cpu->passing = cpu->passes;
			stats->kept++;
			done = true;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	conclude(cpu);
	if (set->survey)
		stats->decide_ns += bpf_ktime_get_ns() - started;
	/* The chosen thread ran elsewhere meanwhile, or may not run here: the queue's own order. */
	return done || take_first(me);
}

#endif
