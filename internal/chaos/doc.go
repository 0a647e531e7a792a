// Package chaos publishes a known workload to a running Palimpsest, kills its
// processes (-9) many times meanwhile, and then compares the stored data with the
// acknowledged messages.
//
// A [Plan] lists the processes: one with everything, or several that share a broker
// and engines. A [Workload] is drawn from a seed, together with the facts that it
// must lead to. [Run] publishes it as ordinary NATS clients do and writes a [Record]
// of the acknowledgements. [Judge] reads the data of the stopped processes. Its
// verdict is a function of that [Evidence] and the record alone.
package chaos
