/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which thread runs next: Time Aggregation Scheduling (TAS) and its inter-core form (ITAS), Yamada
 * and Kusakabe, "Impact of Inter-Core Time Aggregation Scheduler on a Database Server Workload",
 * as pure functions over numbers.
 *
 *   queue of a core, by vruntime    B          C         .       H        .
 *                                   head       member            companion
 *                                   |<-- within the bonus of the head -->|
 *
 *   this core ran A;  C is of A's group;  H is of the group that the master core published.
 *   alone, master:  C while count < limit and C is within the bonus, else B
 *   slave:          H while within the bonus, else C as above, else B
 *   master:         publishes its group when it takes C, withdraws it otherwise
 *
 * The paper calls C the sibling thread; here it is a member of A's aggregation group. The paper's
 * letters for a slave are E, F, G for A, B, C. The caller defines groups: address spaces in the
 * paper. This file compiles as BPF C and as C17, includes nothing, keeps no state, has no loop and
 * reads no clock; the scheduler keeps the numbers between two decisions.
 *
 * Bounded waiting is not in the paper: who is chosen before others of a lower vruntime makes them
 * wait, and may use no more than their slack. A caller without bounds gives everybody all of it.
 */
#ifndef WORKAHEAD_ITAS_H
#define WORKAHEAD_ITAS_H

typedef __UINT32_TYPE__ itas_u32;
typedef __UINT64_TYPE__ itas_u64;
typedef __INT64_TYPE__ itas_s64;

#define ITAS_INLINE static inline __attribute__((always_inline, unused))

/* The greatest meaningful difference of two vruntimes, and so the greatest bonus. */
#define ITAS_BONUS_MAX ((itas_u64)0x7fffffffffffffffULL)

/* Slack of a thread that may be passed over as the bonus has it: the paper's. */
#define ITAS_UNHURRIED ITAS_BONUS_MAX

/* The weight of a thread of nice 0, as sched_ext has it. */
#define ITAS_WEIGHT_USUAL 100

/* A thread that wakes up may be passed over for as long as it is going to run, this many times. */
#define ITAS_TURNS_WAITED 4

/* The role of a core. */
enum itas_role {
	ITAS_ALONE = 0,  /* TAS: TP1-TP4 */
	ITAS_MASTER = 1, /* ITAS: IP1-IP5 */
	ITAS_SLAVE = 2,  /* ITAS: IP1, IP6 */
};

/* Reading of the paper's slips. */
enum itas_reading {
	ITAS_CORRECTED = 0,
	ITAS_LITERAL = 1,
};

struct itas_tunables {
	itas_u64 bonus; /* agg_bonus, in units of vruntime: ns */
	itas_u64 companion_bonus; /* that of H; the paper has one for all */
	itas_u32 limit; /* agg_limit, consecutive aggregations */
	itas_u32 reading;
};

/* Candidates, as bits. */
enum itas_candidate {
	ITAS_NOBODY = 0,
	ITAS_HEAD = 1,      /* B, F: the lowest vruntime */
	ITAS_MEMBER = 2,   /* C, G: of the group of the thread that ran last, not that thread */
	ITAS_COMPANION = 4, /* H: of the group that the master published */
	ITAS_OVERDUE = 8,   /* a thread waits longer than the scheduler promises */
	ITAS_ENOUGH = 16,   /* no later thread can be chosen: stop the scan */
};

/* A runnable thread, as it is shown. */
struct itas_thread {
	itas_u64 vruntime;
	itas_u64 group; /* 0 for none */
	itas_s64 slack; /* ns for which others may still pass it over */
	itas_u64 turn;	/* ns that it is expected to run */
};

/* The candidates of a queue so far. Starts as zeros, except for the two groups and the slack, which
 * is ITAS_UNHURRIED. */
struct itas_view {
	itas_u64 own;    /* group of the thread that ran last, 0 for none */
	itas_u64 shared; /* group that the master published, 0 for none or if this core is not a slave */
	itas_u64 head, member, companion; /* vruntimes, where `have` has their bits */
	itas_s64 slack; /* the least of the threads shown */
	itas_s64 member_slack, companion_slack; /* of those shown before it, which it passes over */
	itas_u32 have;
	itas_u32 reserved;
};

/* Change of a count. */
enum itas_count {
	ITAS_KEEP = 0,
	ITAS_RESET = 1,
	ITAS_INCREMENT = 2,
	ITAS_RAISE_BONUS = 3, /* literal IP6.2 only: the bonus of E's group grows by one unit */
};

/* Owner of the count. */
enum itas_whose {
	ITAS_OF_CURRENT = 0, /* of the group of the thread that ran last on this core: A, or E */
	ITAS_OF_SLAVE = 1,   /* literal IP3 and IP5 only: of the group of E, which runs on a slave */
};

/* Change of ia_mm, the group that the master publishes. */
enum itas_publish {
	ITAS_LEAVE = 0,
	ITAS_WITHDRAW = 1,
	ITAS_PUBLISH = 2,
};

struct itas_choice {
	itas_u32 pick; /* ITAS_NOBODY, ITAS_HEAD, ITAS_MEMBER or ITAS_COMPANION */
	itas_u32 count;
	itas_u32 whose;
	itas_u32 publish;
	itas_u64 turn; /* ns after which a thread that was passed over is due */
};

/* A bonus in thousandths of a time slice. */
ITAS_INLINE itas_u64 itas_bonus_of_slice(itas_u64 slice, itas_u32 per_mille)
{
	itas_u64 whole = slice / 1000, rest = slice % 1000;

	if (per_mille && whole > ITAS_BONUS_MAX / per_mille)
		return ITAS_BONUS_MAX;
	whole *= per_mille;
	rest = rest * per_mille / 1000;
	return whole > ITAS_BONUS_MAX - rest ? ITAS_BONUS_MAX : whole + rest;
}

/*
 * How long a thread that wakes up may be passed over, beside what it waits by its turn in the fair
 * order: by what sleeping has earned it (`credit`), or ITAS_TURNS_WAITED times as long as it is going
 * to run; at most `bound`, and less by its weight, as a request of EEVDF is due.
 */
ITAS_INLINE itas_s64 itas_slack(itas_u64 bound, itas_u32 weight, itas_u64 credit, itas_u64 turn)
{
	itas_u64 most = bound < ITAS_BONUS_MAX ? bound : ITAS_BONUS_MAX;
	itas_u64 slack = turn < most / ITAS_TURNS_WAITED ? turn * ITAS_TURNS_WAITED : most;

	if (slack < credit)
		slack = credit < most ? credit : most;
	if (weight <= ITAS_WEIGHT_USUAL)
		return slack;
	return slack / weight * ITAS_WEIGHT_USUAL + slack % weight * ITAS_WEIGHT_USUAL / weight;
}

/* Lower vruntime runs first; vruntimes wrap, so only their difference is compared, as in CFS. */
ITAS_INLINE int itas_before(itas_u64 a, itas_u64 b)
{
	return (itas_s64)(a - b) < 0;
}

/* Eq. 2 to 5: rival > candidate - bonus, strictly. */
ITAS_INLINE int itas_beats(itas_u64 candidate, itas_u64 rival, itas_u64 bonus)
{
	itas_u64 most = bonus < ITAS_BONUS_MAX ? bonus : ITAS_BONUS_MAX;

	return (itas_s64)(candidate - rival) < (itas_s64)most;
}

/* How far behind the head a thread can be chosen. */
ITAS_INLINE itas_u64 itas_reach(const struct itas_tunables *tunables)
{
	return tunables->bonus > tunables->companion_bonus ? tunables->bonus
							   : tunables->companion_bonus;
}

/* Eq. 1. */
ITAS_INLINE int itas_under_limit(itas_u32 count, itas_u32 limit)
{
	return count < limit;
}

/* Whether the thread becomes a candidate: there is none yet, or one with a higher vruntime. The
 * first of equals stays, so that the leftmost of several members is C. */
ITAS_INLINE int itas_takes(itas_u32 have, itas_u32 place, itas_u64 vruntime, itas_u64 holder)
{
	return !(have & place) || itas_before(vruntime, holder);
}

/* Whether a thread may run before those that were shown: none of them is due before it stops. */
ITAS_INLINE int itas_fits(const struct itas_view *view, itas_u64 turn)
{
	return view->slack > 0 && turn <= (itas_u64)view->slack;
}

/* Whether there is a candidate of each kind that there can be: of those, the first is. */
ITAS_INLINE int itas_complete(const struct itas_view *view)
{
	return (view->have & ITAS_MEMBER) && (!view->shared || (view->have & ITAS_COMPANION));
}

/*
 * IP1: shows one runnable thread; `reach` is itas_reach(). Returns the candidates it has become
 * (the caller remembers them), with ITAS_ENOUGH when all behind it in the queue are out of the
 * bonus's reach, come after a candidate of their kind, or may not pass over a thread that was shown:
 * threads in ascending vruntime need not be shown beyond that. (In the literal reading they must be: it keeps the count where neither G nor H
 * exists, and resets it where H can't be reached.) Threads with a slack come in ascending vruntime.
 */
ITAS_INLINE itas_u32 itas_see(struct itas_view *view, const struct itas_thread *thread,
			      itas_u64 reach)
{
	itas_u64 vruntime = thread->vruntime, group = thread->group;
	int candidate = group && itas_fits(view, thread->turn);
	itas_u32 became = 0, enough = 0;

	if (itas_takes(view->have, ITAS_HEAD, vruntime, view->head)) {
		view->head = vruntime;
		became |= ITAS_HEAD;
	} else if (!itas_beats(vruntime, view->head, reach)) {
		enough = ITAS_ENOUGH;
	}
	if (candidate && group == view->own &&
	    itas_takes(view->have, ITAS_MEMBER, vruntime, view->member)) {
		view->member = vruntime;
		view->member_slack = view->slack;
		became |= ITAS_MEMBER;
	}
	if (candidate && group == view->shared &&
	    itas_takes(view->have, ITAS_COMPANION, vruntime, view->companion)) {
		view->companion = vruntime;
		view->companion_slack = view->slack;
		became |= ITAS_COMPANION;
	}
	if (thread->slack < view->slack)
		view->slack = thread->slack;
	view->have |= became;
	if (view->slack <= 0 || itas_complete(view))
		enough = ITAS_ENOUGH;
	return became | enough;
}

/* The same for the thread that ran last and could go on. It is not a member for itself: a
 * program of one thread is never aggregated. */
ITAS_INLINE itas_u32 itas_see_current(struct itas_view *view, const struct itas_thread *thread,
				      itas_u64 reach)
{
	itas_u64 own = view->own;
	itas_u32 became;

	view->own = 0;
	became = itas_see(view, thread, reach);
	view->own = own;
	return became;
}

/* TP1 to TP4; IP2 to IP5 are the same with a group to publish. */
ITAS_INLINE struct itas_choice itas_by_time(const struct itas_view *view, itas_u32 count,
					    const struct itas_tunables *tunables, itas_u32 role)
{
	int master = role == ITAS_MASTER;
	struct itas_choice choice = {
		.pick = view->have & ITAS_HEAD,
		.count = ITAS_RESET,
		.whose = master && tunables->reading == ITAS_LITERAL ? ITAS_OF_SLAVE
								     : ITAS_OF_CURRENT,
		.publish = master ? ITAS_WITHDRAW : ITAS_LEAVE,
	};

	if ((view->have & ITAS_MEMBER) && itas_under_limit(count, tunables->limit) &&
	    itas_beats(view->member, view->head, tunables->bonus)) {
		choice.pick = ITAS_MEMBER;
		choice.count = ITAS_INCREMENT;
		if (master)
			choice.publish = ITAS_PUBLISH;
	}
	return choice;
}

/* IP6 of a slave. */
ITAS_INLINE struct itas_choice itas_by_master(const struct itas_view *view, itas_u32 count,
					      const struct itas_tunables *tunables)
{
	int literal = tunables->reading == ITAS_LITERAL;
	int member = !!(view->have & ITAS_MEMBER), companion = !!(view->have & ITAS_COMPANION);
	int eq3 = companion && itas_beats(view->companion, view->head, tunables->companion_bonus);
	int eq4 = companion && member &&
		  itas_beats(view->companion, view->member, tunables->companion_bonus);
	int eq5 = member && itas_beats(view->member, view->head, tunables->bonus);
	struct itas_choice choice = { .pick = view->have & ITAS_HEAD, .count = ITAS_RESET };

	if (member && companion && eq3 && eq4) { /* IP6.1 */
		choice.pick = ITAS_COMPANION;
	} else if (member) { /* IP6.2, also where IP6.1 fails */
		if (itas_under_limit(count, tunables->limit) && eq5) {
			choice.pick = ITAS_MEMBER;
			choice.count = literal ? ITAS_RAISE_BONUS : ITAS_INCREMENT;
		}
	} else if (companion) { /* IP6.3: Eq. 4 names G, which isn't there */
		if (literal ? eq4 : eq3)
			choice.pick = ITAS_COMPANION;
	} else if (literal) { /* IP6, neither: no reset is stated */
		choice.count = ITAS_KEEP;
	}
	return choice;
}

/*
 * The decision of one core. `count` is agg_count of the group of the thread that ran last here.
 * If a thread is overdue (not in the paper) no candidate is preferred, as if Eq. 2 to 5 were false:
 * the head is chosen, in whose place the caller may put the thread that has waited longest.
 */
ITAS_INLINE struct itas_choice itas_choose(const struct itas_view *seen, itas_u32 role,
					   itas_u32 count, const struct itas_tunables *tunables)
{
	struct itas_tunables now = *tunables;
	struct itas_choice choice;

	if (seen->have & ITAS_OVERDUE)
		now.bonus = now.companion_bonus = 0;
	choice = role == ITAS_SLAVE ? itas_by_master(seen, count, &now)
				    : itas_by_time(seen, count, &now, role);
	choice.turn = ITAS_UNHURRIED;
	if (choice.pick == ITAS_MEMBER)
		choice.turn = seen->member_slack;
	else if (choice.pick == ITAS_COMPANION)
		choice.turn = seen->companion_slack;
	return choice;
}

/* The count after a choice. */
ITAS_INLINE itas_u32 itas_count_after(itas_u32 count, itas_u32 change)
{
	if (change == ITAS_RESET)
		return 0;
	if (change == ITAS_INCREMENT && count != 0xffffffffU)
		return count + 1;
	return count;
}

#endif
