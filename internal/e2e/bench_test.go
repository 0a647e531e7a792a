package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Every benchmark runs a fixed amount of work against the program as a process,
// whatever b.N: what is measured is distributions and rates, which
// b.ReportMetric prints. The figures depend on what else the machine does.
const (
	paceRate  = 200 // messages/s while lags are measured
	probes    = 200
	floodSize = 8000
	floodWide = 200 // scopes
	// probePause keeps a probe from being the load; it is part of the lags.
	probePause = 3 * time.Millisecond
)

const introduction = `{"role":"user","content":"Hello, Nora here. I'm a hydrologist at Fenwick Labs."}`

// report prints the median and the 99th percentile in milliseconds.
func report(b *testing.B, name string, lags []time.Duration) {
	b.Helper()
	slices.Sort(lags)
	for _, p := range []int{50, 99} {
		at := lags[min(len(lags)-1, len(lags)*p/100)]
		b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("ms-%s-p%d", name, p))
	}
}

// BenchmarkLag measures what passes between a publish by a bare client and the
// message being found over HTTP by text, by vector, and as a fact, while 200
// others a second are published, each about a user of its own.
func BenchmarkLag(b *testing.B) {
	i := start(b, b.TempDir())
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { i.introduceOthers(stop) })
	var lags [3][]time.Duration
	for n := range probes {
		for k, lag := range i.find(fmt.Sprintf("probe%03d", n)) {
			lags[k] = append(lags[k], lag)
		}
	}
	close(stop)
	others.Wait()
	report(b, "text", lags[0])
	report(b, "vector", lags[1])
	report(b, "fact", lags[2])
}

func (i *instance) introduceOthers(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second / paceRate)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			i.introduce(fmt.Sprintf("other%06d", n))
		case <-stop:
			return
		}
	}
}

func (i *instance) introduce(user string) {
	if _, err := i.js.PublishAsync(events.EpisodeSubject(person(user)), []byte(introduction)); err != nil {
		i.t.Error(err)
	}
}

// find returns how long an introduction took to be found by text, by vector,
// and as a fact.
func (i *instance) find(user string) (lags [3]time.Duration) {
	i.t.Helper()
	q := api.Search{Selector: api.Selector{User: &user}, Text: "hydrologist", Explain: true, Limit: 20}
	began := time.Now()
	i.introduce(user)
	for missing := len(lags); missing > 0; {
		if time.Since(began) > patience {
			i.t.Fatalf("%s: found only %v within %v", user, lags, patience)
		}
		found, err := i.api.Search(i.t.Context(), q)
		if err != nil {
			i.t.Fatal(err)
		}
		for k, seen := range channels(found) {
			if seen && lags[k] == 0 {
				lags[k] = time.Since(began)
				missing--
			}
		}
		time.Sleep(probePause) //nolint:forbidigo // paces a poll of another process
	}
	return lags
}

func channels(found api.Found) (seen [3]bool) {
	for _, hit := range found.Results {
		if hit.Type == "fact" {
			seen[2] = true
			continue
		}
		for name := range hit.Channels {
			seen[0] = seen[0] || strings.Contains(name, "text")
			seen[1] = seen[1] || strings.Contains(name, "vector")
		}
	}
	return seen
}

// BenchmarkFlood measures rates over 200 scopes: episodes accepted, stored, and
// consolidated by rule turn; and again with 1 % of messages that are refused.
func BenchmarkFlood(b *testing.B) {
	for _, bad := range []int{0, 1} {
		b.Run(fmt.Sprintf("bad=%d%%", bad), func(b *testing.B) {
			i := start(b, b.TempDir())
			began := time.Now()
			good := i.flood(bad)
			rate(b, "accepted", floodSize, began)
			i.awaitTurn(func(a api.Account) bool { return a.Accepted == uint64(good) })
			rate(b, "stored", good, began)
			i.awaitTurn(func(a api.Account) bool { return a.Consolidated == uint64(good) })
			rate(b, "known", good, began)
			b.ReportMetric(i.processorSeconds()*1e6/floodSize, "cpu-µs/episode")
		})
	}
}

func rate(b *testing.B, name string, n int, began time.Time) {
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), name+"/s")
}

// awaitTurn waits until the account of rule turn over all scopes is as wanted.
func (i *instance) awaitTurn(want func(api.Account) bool) {
	i.t.Helper()
	eventually(i.t, "the ledger of rule turn", func() error {
		l, err := i.api.Ledger(i.t.Context(), scope.Selector{Project: scope.DefaultProject}, false)
		if err != nil {
			return err
		}
		for _, a := range l.Totals {
			if a.Rule == "turn" && want(a) {
				return nil
			}
		}
		return fmt.Errorf("%+v", l.Totals)
	})
}

// flood publishes as fast as the stream acknowledges and returns how many of
// the messages are in order.
func (i *instance) flood(badPercent int) (good int) {
	i.t.Helper()
	acks := make([]jetstream.PubAckFuture, 0, floodSize)
	for n := range floodSize {
		body := fmt.Sprintf(`{"role":"user","content":"I like board game number %d."}`, n)
		if badPercent > 0 && n%(101-badPercent) == 0 {
			body = `{"role":"user","content":`
		} else {
			good++
		}
		ack, err := i.js.PublishAsync(events.EpisodeSubject(person(fmt.Sprintf("flood%03d", n%floodWide))), []byte(body))
		if err != nil {
			i.t.Fatal(err)
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			i.t.Fatal(err)
		}
	}
	return good
}

// BenchmarkStart measures what an empty process costs: the time until it is
// ready, its memory when idle, and the size of its binary as it is shipped.
func BenchmarkStart(b *testing.B) {
	var starts, resident []float64
	for range 5 {
		began := time.Now()
		i := start(b, b.TempDir())
		eventually(b, "ready", func() error {
			_, err := i.api.Ready(b.Context())
			return err
		})
		starts = append(starts, time.Since(began).Seconds()*1000)
		resident = append(resident, i.residentMiB())
		i.kill()
	}
	slices.Sort(starts)
	slices.Sort(resident)
	b.ReportMetric(starts[len(starts)/2], "ms-ready")
	b.ReportMetric(resident[len(resident)/2], "MiB-idle")
	b.ReportMetric(shippedMiB(b), "MiB-binary")
}

// residentMiB is the process's resident memory; 0 where the system does not
// tell in /proc.
func (i *instance) residentMiB() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.process.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// processorSeconds is the time that the process has used of all processors, of
// which other work on the machine takes nothing away; 0 where the system does
// not tell in /proc.
func (i *instance) processorSeconds() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.process.Process.Pid))
	if err != nil {
		return 0
	}
	// Fields count from behind the program's name, which may hold spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	const ticksPerSecond = 100
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond
}

func shippedMiB(b *testing.B) float64 {
	b.Helper()
	path := filepath.Join(b.TempDir(), "palimpsest")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "palimpsest/cmd/palimpsest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / (1 << 20)
}
