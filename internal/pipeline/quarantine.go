package pipeline

import "math/rand/v2"

// quarantine runs messages that were delivered suspiciously often alone. If one
// of them kills the process, all that runs or waits beside it is delivered once
// more too. Alone and in random order the innocent get through before it more
// often than not, each time the process starts; what remains in the end is the
// one that kills, and the mark of its trial names nobody else.
//
// The lanes' lock guards it.
type quarantine struct {
	// suspectAfter is how many deliveries are no cause for suspicion.
	suspectAfter int
	suspects     []*lane // ready, with a suspect at the head
	active       int     // messages being run
	exclusive    bool    // one of them is a suspect
	since        int     // messages picked since the last suspect
}

// suspectAfter is a quarter of the deliveries that lead to a trial.
func (c Config) suspectAfter() int { return max(1, c.MaxDeliveries/4) }

// pick takes a lane to run the head of, nil where none may run now.
func (l *lanes) pick() *lane {
	if l.exclusive {
		return nil
	}
	l.sort()
	waiting := len(l.suspects) > 0
	switch {
	case len(l.ready) > 0 && (!waiting || l.since < l.limit):
		q := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		l.active++
		l.since++
		return q
	case !waiting || l.active > 0:
		return nil // whoever finishes last picks the suspect
	}
	i := l.mostSuspect()
	q := l.suspects[i]
	l.suspects = append(l.suspects[:i], l.suspects[i+1:]...)
	l.active, l.since, l.exclusive = 1, 0, true
	return q
}

// sort moves suspects out of the ready lanes, up to the first that is none, and
// drops lanes that were emptied by a release.
func (l *lanes) sort() {
	for len(l.ready) > 0 {
		q := l.ready[0]
		switch {
		case len(q.queue) == 0:
			delete(l.byKey, q.key)
		case l.suspectAfter > 0 && q.queue[0].deliveries > l.suspectAfter:
			l.suspects = append(l.suspects, q)
		default:
			return
		}
		l.ready[0] = nil
		l.ready = l.ready[1:]
	}
	kept := l.suspects[:0]
	for _, q := range l.suspects {
		if len(q.queue) > 0 {
			kept = append(kept, q)
		} else {
			delete(l.byKey, q.key)
		}
	}
	clear(l.suspects[len(kept):])
	l.suspects = kept
}

// mostSuspect is the suspect with the most deliveries; a random one of several.
func (l *lanes) mostSuspect() int {
	most, same := 0, 1
	for i := 1; i < len(l.suspects); i++ {
		d, best := l.suspects[i].queue[0].deliveries, l.suspects[most].queue[0].deliveries
		switch {
		case d > best:
			most, same = i, 1
		case d == best:
			if same++; rand.IntN(same) == 0 {
				most = i
			}
		}
	}
	return most
}

// leave ends what pick began. After a suspect the others may run again.
func (l *lanes) leave() {
	l.active--
	l.signal()
	if !l.exclusive {
		return
	}
	l.exclusive = false
	for n := len(l.ready); n > 0 && l.workers < l.limit; n-- {
		l.workers++
		l.workerG.Go(l.work)
	}
}
