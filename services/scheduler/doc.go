// Package scheduler owns cadence and order: it decides when which episodes of
// a scope are consolidated by which rule.
//
//	stored, audit, clock ─▶ scheduler ─▶ ticks
//	                            ├─▶ commands: releases of what is held
//	                            └─▶ session ends (back into episodes, in order)
//
// A tick names a rule, a fact scope and a half-open range of ordinals that
// begins at the rule's watermark. One tick of a (rule, scope) is under way at a
// time: the next is issued when the watermark has reached its end.
//
// Everything is decided from the store's state and the clock. Messages on
// STORED and AUDIT only wake it; sweeps find what a lost wake-up left. A claim
// row, set by compare-and-set before a tick is published, keeps replicas from
// paying twice; correctness does not rest on it, because of overlapping ticks
// only the one that begins at the watermark is applied. What is kept in memory
// (the agenda, counts of slots, what was announced) only saves work. A process
// that starts publishes what it finds claimed again: the one before may have died
// between a claim and its tick, which nobody would miss until it is overdue.
//
// Session ends. A publisher ends a session explicitly; the scheduler ends one
// that is idle, and those that fell silent before another session of their
// scope began. It does so by publishing session.ended on EPISODES, so that the
// end stands in order behind what was said. The message names the session's
// last ordinal as the registry had it: the store drops the end if something was
// said since, and takes one end per (session, last ordinal), so that all
// causes, replicas and repetitions give one.
//
// Releases. A held candidate may have a time at which it is decided on again. A
// sweep asks for it by a command, as an API caller would; the first that is
// carried out takes the candidate out of the buffer, later ones find it gone.
//
// An episode of a caller who waits counts like any other: the rules that run on
// every episode, and the others in their turn, consolidate it whether anybody
// waits or not, and no cadence looks at the request.
//
// The scheduler may not read what is known, nor write anything but claims and
// the times at which cron rules were served.
package scheduler
