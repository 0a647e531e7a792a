// Package scheduler owns cadence and order: it decides when which episodes of
// a scope are consolidated by which rule.
//
//	stored, audit, clock ─▶ scheduler ─▶ ticks
//	                            ├─▶ commands: releases of held candidates
//	                            └─▶ session ends (back into episodes, in order)
//
// A tick names a rule, a fact scope and a half-open range of ordinals that
// begins at the rule's watermark. One tick of a (rule, scope) is under way at a
// time: the next is issued when the watermark has reached its end.
//
// Every decision follows from the store's state and the clock. Messages on STORED
// and AUDIT only wake the scheduler; sweeps find the scopes of lost wake-ups. A
// claim row, set by compare-and-set before a tick is published, keeps replicas from
// doing work twice. Correctness does not depend on it, because of overlapping ticks
// only the one that begins at the watermark is applied. State in memory (the queues,
// counts of slots, announced findings) only saves work. A process that starts
// publishes all claimed ticks again: the previous process may have died between a claim
// and its tick, which would be noticed only when it is overdue.
//
// Session ends. A publisher ends a session explicitly; the scheduler ends one
// that is idle, and those that fell silent before another session of their
// scope began. It does so by publishing session.ended on EPISODES, so that the
// end comes in order after the session's episodes. The message names the session's
// last ordinal as the registry had it: the store drops the end if an episode came
// since, and takes one end per (session, last ordinal), so that all causes, replicas
// and repetitions give one.
//
// Releases. A held candidate may have a time at which it is decided on again. A
// sweep releases it by a command, as an API caller does; the first command that is
// executed removes the candidate from the buffer, later ones have no effect.
//
// Requests. An episode may ask for a tick of its own: its caller brings a prompt, or
// waits for a model. Such episodes are read by the rule of requests, in their turn
// among those of the rule that reads every episode: the tick names both, moves the
// watermark of the latter, and covers only episodes with the same request. That one
// watermark keeps the order. The other rules skip such episodes.
//
// Runs. A caller may run a rule in a scope at once, also one that is switched off. A
// message on STORED requests it, and the rule is due up to the ordinal in the message.
//
// Maintenance. A rule with steps has no range. When its cron fires, its ticks name the
// facts that the store finds due.
//
// The scheduler may not read facts, nor write anything but claims and the times at
// which cron rules were served.
package scheduler
