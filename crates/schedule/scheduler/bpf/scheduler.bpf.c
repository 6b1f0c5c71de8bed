// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler: a queue per CPU in order of vruntime, and the policy of itas.h at its head.
 *
 *   wakes up ── idle CPU? ── yes ─► runs there
 *                  no ─► its CPU's queue, by vruntime ── dispatch: balance, decide ─► runs
 *                                                               steal, when there is nobody
 *
 * Weights scale the charge, as in CFS, down the tree of control groups. The kernel takes over again when the loader goes away, when
 * this exits with an error, or when a runnable task has waited for timeout_ms. It also does when a
 * CPU comes or goes, since there are no operations for that: tasks in the queue of a CPU that is
 * gone could only be taken by those they aren't allowed on. The loader attaches it again.
 */
#include "balance.h"
#include "decide.h"

char _license[] SEC("license") = "GPL";

s32 OPERATION(workahead_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct settings *set = the_settings();
	struct stats *stats;
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle && set && set->fault != WIRE_STALL && !parked_until(p, clock())) {
		insert(p, SCX_DSQ_LOCAL, set->slice_ns, 0);
		stats = stats_of(bpf_get_smp_processor_id());
		if (stats)
			stats->direct++;
	} else if (set && (wake_flags & SCX_WAKE_FORK)) {
		cpu = least_busy(p, set, cpu);
	}
	return cpu;
}

/* Whether a thread that woke up is so far behind the one that runs that it goes first. */
static __always_inline bool preempts(struct task *task, struct cpu *cpu, struct settings *set,
				     u64 now)
{
	u64 weight = cpu->weight, runs = cpu->vruntime, far = set->preempt_ns;

	if (!weight || !far)
		return false;
	if ((s64)(now - cpu->started) > 0)
		runs += virtual_time(now - cpu->started, weight);
	return itas_before(task->vruntime + far, runs);
}

void OPERATION(workahead_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct settings *set = the_settings();
	struct task *task = task_of(p);
	s32 me = scx_bpf_task_cpu(p);
	struct cpu *cpu = cpu_of(me);
	struct stats *stats;
	u64 now = clock(), until, turn;

	if (set && set->fault == WIRE_STALL)
		return;
	if (set && cpu && (cpu->taken || !bpf_cpumask_test_cpu(me, p->cpus_ptr))) {
		me = least_busy(p, set, bpf_cpumask_any_distribute(p->cpus_ptr));
		cpu = cpu_of(me);
	}
	/* Threads by which the kernel keeps a CPU going wait for nobody. */
	if (!set || !task || !cpu || ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)) {
		insert(p, SCX_DSQ_LOCAL, 4000000, enq_flags);
		return;
	}
	settle(task, me, cpu, set->slice_ns);
	until = parked_until(p, now);
	if (until) {
		stats = stats_of(bpf_get_smp_processor_id());
		if (stats)
			stats->parked++;
		burden(task, NOWHERE, 0);
		insert_at(p, PARKED, set->slice_ns, until, enq_flags);
		return;
	}
	task->hurried = (enq_flags & SCX_ENQ_WAKEUP) && set->max_delay_ns;
	if (task->hurried) {
		turn = task->turn < set->slice_ns ? task->turn : set->slice_ns;
		task->slack = itas_slack(set->max_delay_ns, p->scx.weight, set->slice_ns / 2, turn);
		task->passed_at = cpu->passed;
	}
	/* Sleeping earns half a slice at most, as CFS's gentle fair sleepers. */
	if (itas_before(task->vruntime, cpu->least - set->slice_ns / 2))
		task->vruntime = cpu->least - set->slice_ns / 2;
	task->queued_at = now;
	burden_waiting(task, me, p);
	insert_at(p, me, set->slice_ns, task->vruntime, enq_flags);
	if ((enq_flags & SCX_ENQ_WAKEUP) && preempts(task, cpu, set, now)) {
		stats = stats_of(bpf_get_smp_processor_id());
		if (stats)
			stats->preempted++;
		scx_bpf_kick_cpu(me, SCX_KICK_PREEMPT);
	} else {
		/* Another CPU than the task's may be going idle at this very moment. */
		scx_bpf_kick_cpu(me, me == scx_bpf_task_cpu(p) ? SCX_KICK_IDLE : 0);
	}
}

void OPERATION(workahead_dispatch, s32 me, struct task_struct *prev)
{
	struct settings *set = the_settings();
	struct stats *stats = stats_of(me);
	struct cpu *cpu = cpu_of(me);
	struct task *task = NULL;
	u64 now = clock();

	if (!set || !stats || !cpu)
		return;
	cpu->served_at = now;
	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = NULL;
	if (prev) {
		task = task_of(prev);
		if (task) {
			charge(prev, task, cpu, now);
			weigh(me, cpu, prev, task);
		}
		if (cpu->limited && parked_until(prev, now))
			prev = NULL; /* enqueued as the last one, and parked there */
	}
	balance(me, cpu, stats, set, now);
	if (!decide(me, cpu, stats, set, prev) && !prev)
		steal(me, stats, set);
}

void OPERATION(workahead_running, struct task_struct *p)
{
	s32 me = bpf_get_smp_processor_id();
	struct settings *set = the_settings();
	struct stats *stats = stats_of(me);
	struct task *task = task_of(p);
	struct cpu *cpu = cpu_of(me);
	u64 now = clock(), group, cgroup, *bonus;

	if (!set || !stats || !task || !cpu)
		return;
	settle(task, me, cpu, set->slice_ns);
	if (!scx_bpf_dsq_nr_queued(me))
		advance(cpu, task->vruntime);
	cpu->started = now;
	cpu->vruntime = task->vruntime;
	weigh(me, cpu, p, task);
	cpu->passing = cpu->passes;
	cpu->passes = 0;
	task->queued_at = 0;
	task->began_at = now;
	group = group_of(p, set);
	if (!group)
		return; /* a kernel thread in between does not change the group */
	cgroup = cgroup_of(p);
	bonus = bpf_map_lookup_elem(&wa_bonuses, &group);
	if (!bonus)
		bonus = bpf_map_lookup_elem(&wa_bonuses, &cgroup);
	cpu->own = group;
	cpu->bonus = bonus ? *bonus : set->bonus_ns;
}

void OPERATION(workahead_stopping, struct task_struct *p, bool runnable)
{
	struct cpu *cpu = cpu_of(bpf_get_smp_processor_id());
	struct settings *set = the_settings();
	struct task *task = task_of(p);
	u64 now = clock();

	if (!set || !task || !cpu)
		return;
	charge(p, task, cpu, now);
	note_turn(task, now);
	cpu->weight = 0;
	if (set->fault == WIRE_ERROR) {
		static char format[] = "an error was requested";

		scx_bpf_error_bstr(format, (unsigned long long *)format, 0);
	}
}

void OPERATION(workahead_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_group *group = group_above(p);
	struct task *task = task_of(p);

	if (!task || task->busy_in || !is_group(group))
		return;
	task->busy_in = (u64)group;
	task->counted = p->scx.weight ?: 100;
	add_load(group, task->counted);
}

void OPERATION(workahead_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task *task = task_of(p);

	if (!task)
		return;
	burden(task, NOWHERE, 0);
	if (!task->busy_in)
		return;
	take_load(task->busy_in, task->counted);
	task->busy_in = 0;
}

/* A higher scheduling class takes the CPU: its next task goes to other CPUs, and an idle one takes
 * from its queue. */
void OPERATION(workahead_cpu_release, s32 me, struct scx_cpu_release_args *args)
{
	struct settings *set = the_settings();
	struct cpu *cpu = cpu_of(me);
	u32 i;

	if (cpu)
		cpu->taken = 1;
	scx_bpf_reenqueue_local();
	if (!set || scx_bpf_dsq_nr_queued(me) <= 0)
		return;
	bpf_for(i, 0, set->cpus)
		scx_bpf_kick_cpu(i, SCX_KICK_IDLE);
}

void OPERATION(workahead_cpu_acquire, s32 me, struct scx_cpu_acquire_args *args)
{
	struct cpu *cpu = cpu_of(me);

	if (cpu)
		cpu->taken = 0;
}

/* A process has the tag of the one that made it. */
static __always_inline void inherit(struct task_struct *p)
{
	u32 pid = p->tgid, parent = bpf_get_current_pid_tgid() >> 32;
	u64 *tag;

	if (p->pid != p->tgid)
		return;
	tag = bpf_map_lookup_elem(&wa_tags, &parent);
	if (tag)
		bpf_map_update_elem(&wa_tags, &pid, tag, BPF_ANY);
}

s32 OPERATION(workahead_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task *task =
		bpf_task_storage_get(&wa_tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task)
		return -ENOMEM;
	task->home = NOWHERE;
	if (args->fork)
		inherit(p);
	return 0;
}

void OPERATION(workahead_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task *task = task_of(p);
	u32 pid = p->pid;

	if (task)
		burden(task, NOWHERE, 0); /* moved by a CPU that had seen it before it fell asleep */
	if (p->pid == p->tgid)
		bpf_map_delete_elem(&wa_tags, &pid);
}

void OPERATION(workahead_enable, struct task_struct *p)
{
	struct task *task = task_of(p);

	if (task)
		task->home = NOWHERE;
}

/* Gives the parked their places in the queues back when their time has come. */
static int unpark(void *map, u32 *key, struct parking *parking)
{
	struct settings *set = the_settings();
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 now = clock();
	struct task *task;
	struct cpu *cpu;
	s32 there;

	bpf_timer_start(&parking->timer, quotas ? LOOK_NS : LOOK_IDLE_NS, 0);
	if (!set || !quotas)
		return 0;
	bpf_iter_scx_dsq_new(&it, PARKED, 0);
	while ((p = bpf_iter_scx_dsq_next(&it))) {
		if (itas_before(now, p->scx.dsq_vtime))
			break;
		there = scx_bpf_task_cpu(p);
		if (!bpf_cpumask_test_cpu(there, p->cpus_ptr))
			there = bpf_cpumask_any_distribute(p->cpus_ptr);
		task = task_of(p);
		cpu = cpu_of(there);
		if (!task || !cpu)
			continue;
		settle(task, there, cpu, set->slice_ns);
		task->queued_at = now;
		if (itas_before(now, cpu->oldest))
			cpu->oldest = now;
		burden_waiting(task, there, p);
		if (move_at(&it, p, there, task->vruntime))
			scx_bpf_kick_cpu(there, SCX_KICK_IDLE);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* Without a timer nobody is parked: a kernel that has no memory for it, or, on 6.18, a CPU without
 * cmpxchg16b. */
static __always_inline void start_parking(void)
{
	struct parking *parking;
	u32 zero = 0;

	parking = bpf_map_lookup_elem(&wa_parking, &zero);
	if (!parking || bpf_timer_init(&parking->timer, &wa_parking, CLOCK_MONOTONIC) ||
	    bpf_timer_set_callback(&parking->timer, unpark))
		return;
	can_park = !bpf_timer_start(&parking->timer, LOOK_IDLE_NS, 0);
}

s32 SLEEPING_OPERATION(workahead_init)
{
	struct settings *set = the_settings();
	s32 status;
	u32 i;

	if (!set)
		return -ENOMEM;
	status = scx_bpf_create_dsq(PARKED, -1);
	if (status)
		return status;
	start_parking();
	bpf_for(i, 0, set->cpus) {
		status = scx_bpf_create_dsq(i, -1);
		if (status)
			return status;
	}
	return 0;
}

void OPERATION(workahead_exit, struct scx_exit_info *info)
{
	u32 zero = 0;
	struct ended *ended = bpf_map_lookup_elem(&wa_ended, &zero);

	if (!ended)
		return;
	bpf_probe_read_kernel_str(ended->reason, sizeof(ended->reason), info->reason);
	bpf_probe_read_kernel_str(ended->message, sizeof(ended->message), info->msg);
	ended->code = info->exit_code;
	ended->kind = info->kind;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(workahead_switched, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	note_switch(prev, next, preempt || !prev_state);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(workahead_woken, struct task_struct *p)
{
	note_ready(p, true);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(workahead_born, struct task_struct *p)
{
	note_ready(p, false);
	return 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops workahead = {
	.select_cpu = (void *)workahead_select_cpu,
	.enqueue = (void *)workahead_enqueue,
	.dispatch = (void *)workahead_dispatch,
	.runnable = (void *)workahead_runnable,
	.running = (void *)workahead_running,
	.stopping = (void *)workahead_stopping,
	.quiescent = (void *)workahead_quiescent,
	.cpu_acquire = (void *)workahead_cpu_acquire,
	.cpu_release = (void *)workahead_cpu_release,
	.init_task = (void *)workahead_init_task,
	.exit_task = (void *)workahead_exit_task,
	.enable = (void *)workahead_enable,
	.init = (void *)workahead_init,
	.exit = (void *)workahead_exit,
	.flags = SCX_OPS_ENQ_LAST,
	.timeout_ms = 10000,
	.name = "workahead",
};
