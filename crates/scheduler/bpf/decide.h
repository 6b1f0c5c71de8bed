/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One decision: the queue is shown to the policy (itas.h), and its choice is carried out.
 *
 *   own queue ──see──► head, sibling, companion (pids) ──choose──► move to the CPU, or keep prev
 *                 at most scan_max, until ENOUGH
 */
#ifndef WORKAHEAD_DECIDE_H
#define WORKAHEAD_DECIDE_H

#include "survey.h"

/* Shows the CPU's queue. The iterator stays open: what is chosen is moved by it. */
static __always_inline void see_queue(struct bpf_iter_scx_dsq *it, struct cpu *cpu,
				      struct settings *set, u64 reach, u64 now)
{
	struct task_struct *p;
	struct task *task;
	u32 seen;

	while ((p = bpf_iter_scx_dsq_next(it))) {
		if (!cpu->scanned) {
			task = task_of(p);
			if (task && task->queued_at &&
			    (s64)(now - task->queued_at) > (s64)set->patience_ns)
				cpu->view.have |= ITAS_OVERDUE;
		}
		cpu->scanned++;
		seen = itas_see(&cpu->view, p->scx.dsq_vtime, group_of(p, set->key), reach);
		if (seen & ITAS_HEAD)
			cpu->head = p->pid;
		if (seen & ITAS_SIBLING)
			cpu->sibling = p->pid;
		if (seen & ITAS_COMPANION)
			cpu->companion = p->pid;
		if ((seen & ITAS_ENOUGH) && !set->survey)
			break;
		if (cpu->scanned >= set->scan_max)
			break;
	}
}

/* Shows the thread that ran last, where it could go on. */
static __always_inline void see_prev(struct cpu *cpu, struct settings *set, u64 reach,
				     struct task_struct *prev, struct task *task)
{
	u32 seen = itas_see_current(&cpu->view, task->vruntime, group_of(prev, set->key), reach);

	if (seen & ITAS_HEAD)
		cpu->head = 0;
	if (seen & ITAS_COMPANION)
		cpu->companion = 0;
}

static __always_inline void note_choice(struct stats *stats, struct cpu *cpu, u32 pick, u32 count,
					struct settings *set)
{
	bool chance = cpu->view.have & (ITAS_SIBLING | ITAS_COMPANION);

	stats->decisions++;
	stats->picked_head += pick == ITAS_HEAD;
	stats->picked_sibling += pick == ITAS_SIBLING;
	stats->picked_companion += pick == ITAS_COMPANION;
	stats->chances += chance;
	stats->taken += pick == ITAS_SIBLING || pick == ITAS_COMPANION;
	stats->at_limit += chance && pick == ITAS_HEAD && !itas_under_limit(count, set->limit);
	stats->overdue += !!(cpu->view.have & ITAS_OVERDUE);
	note_scan(stats, cpu->scanned);
}

/* Carries out a choice; false when the thread is gone by now. */
static __always_inline bool carry_out(struct bpf_iter_scx_dsq *it, s32 pid)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	bool moved;

	if (!p)
		return false;
	moved = scx_bpf_dsq_move(it, p, SCX_DSQ_LOCAL, 0);
	bpf_task_release(p);
	return moved;
}

/* Decides for a CPU. `task` is that of `prev` where `prev` could go on, or NULL. True when somebody
 * runs next. */
static __always_inline bool decide(s32 me, struct cpu *cpu, struct stats *stats,
				   struct settings *set, struct task_struct *prev,
				   struct task *task)
{
	struct itas_tunables by = {
		.bonus = cpu->bonus, .companion_bonus = cpu->bonus, .limit = set->limit,
	};
	struct role *role = bpf_map_lookup_elem(&wa_roles, &me);
	u32 group = role ? role->group & (GROUPS_MAX - 1) : 0, as = role ? role->role : ITAS_ALONE;
	struct bpf_iter_scx_dsq it;
	struct itas_choice choice;
	bool done = false;
	u64 now = scx_bpf_now();
	s32 pid;

	__builtin_memset(&cpu->view, 0, sizeof(cpu->view));
	cpu->view.own = cpu->own;
	if (as == ITAS_SLAVE) {
		cpu->view.shared = *(volatile u64 *)&published[group].group;
		by.companion_bonus = *(volatile u64 *)&published[group].bonus;
	}
	cpu->scanned = 0;
	bpf_iter_scx_dsq_new(&it, me, 0);
	see_queue(&it, cpu, set, itas_reach(&by), now);
	/* An overdue head has no rival. */
	if (prev && task && !(cpu->view.have & ITAS_OVERDUE))
		see_prev(cpu, set, itas_reach(&by), prev, task);

	choice = itas_choose(&cpu->view, as, cpu->count, &by);
	pid = choice.pick == ITAS_SIBLING     ? cpu->sibling
	      : choice.pick == ITAS_COMPANION ? cpu->companion
					      : cpu->head;
	if (cpu->view.have & ITAS_HEAD) {
		note_choice(stats, cpu, choice.pick, cpu->count, set);
		advance(cpu, cpu->view.head);
	}
	if (choice.pick != ITAS_NOBODY && !pid && prev) {
		prev->scx.slice = set->slice_ns;
		stats->kept++;
		done = true;
	} else if (choice.pick != ITAS_NOBODY && pid) {
		done = carry_out(&it, pid);
		stats->lost += !done;
	}
	bpf_iter_scx_dsq_destroy(&it);

	cpu->count = itas_count_after(cpu->count, choice.count);
	if (choice.publish == ITAS_PUBLISH) {
		*(volatile u64 *)&published[group].bonus = cpu->bonus;
		*(volatile u64 *)&published[group].group = cpu->own;
	} else if (choice.publish == ITAS_WITHDRAW) {
		*(volatile u64 *)&published[group].group = 0;
	}
	if (set->survey)
		stats->decide_ns += bpf_ktime_get_ns() - now;
	/* Whoever was chosen ran elsewhere meanwhile, or may not run here: the queue's own order. */
	return done || scx_bpf_dsq_move_to_local(me);
}

#endif
