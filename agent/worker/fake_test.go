package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/simulated"
)

// station is a log in memory that outlives the workers that use it.
type station struct {
	mu       sync.Mutex
	commands []message.Record
	replies  []message.Reply
	answered map[string]bool
	versions [][]byte
	wake     chan struct{}
}

func newStation() *station {
	return &station{answered: map[string]bool{}, wake: make(chan struct{}, 1)}
}

var _ topic.Station = (*station)(nil)

func (s *station) send(r message.Record) {
	s.mu.Lock()
	s.commands = append(s.commands, r)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Commands delivers everything, again and again: a worker must bear it.
func (s *station) Commands(ctx context.Context, deliver func(message.Record)) error {
	for {
		s.mu.Lock()
		all := slices.Clone(s.commands)
		s.mu.Unlock()
		for _, r := range all {
			deliver(r)
			deliver(r)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		}
	}
}

func (s *station) Reply(_ context.Context, _ uint64, reply message.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered[string(reply.Action)] {
		return topic.ErrAnswered
	}
	s.answered[string(reply.Action)] = true
	s.replies = append(s.replies, reply)
	return nil
}

func (s *station) Versions(_ context.Context, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = append(s.versions, body)
	return nil
}

func (s *station) LastVersions(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.versions) == 0 {
		return nil, nil
	}
	return s.versions[len(s.versions)-1], nil
}

func (s *station) Alive(message.Alive) error       { return nil }
func (s *station) Progress(message.Progress) error { return nil }

func (s *station) Asked(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// answer returns the reply to an action; empty while there is none.
func (s *station) answer(action message.Action) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replies {
		if r.Action == action {
			return r.Result
		}
	}
	return ""
}

// crash is what a worker that is killed at a label panics with.
type crash string

// rig is one simulated host with its log and its power switch.
type rig struct {
	t       *testing.T
	dir     string
	host    *simulated.Host
	station *station
	now     func() time.Time
	// dieAt is the label at whose visit number visit the worker is killed.
	dieAt  string
	visit  int
	visits map[string]int
	// starts counts the workers that were started.
	starts int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	host, err := simulated.Open(filepath.Join(dir, "host"), simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, dir: dir, host: host, station: newStation(), now: time.Now, visits: map[string]int{}}
}

func (r *rig) at(label string) {
	r.visits[label]++
	if label == r.dieAt && r.visits[label] == r.visit {
		panic(crash(label))
	}
}

func (r *rig) options() Options {
	return Options{
		Tenant: "acme", Host: "h01", Application: "os-upgrade-simulated", Dir: filepath.Join(r.dir, "state"),
		Station: r.station, Strategy: r.host, Machine: r.host, Limits: Limits{Step: time.Minute, Reboot: time.Minute},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: r.now, At: r.at,
	}
}

// life is one worker from start to crash, reboot or done. It reports whether
// another one has to follow.
func (r *rig) life(done func() bool) (again bool) {
	r.t.Helper()
	r.starts++
	if r.starts > 20 {
		r.t.Fatal("the worker is started again and again")
	}
	w, err := Open(r.t.Context(), r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		if err := w.Run(ctx); err != nil {
			panic(err)
		}
	}()
	return r.supervise(done, ended, stop)
}

func (r *rig) supervise(done func() bool, ended chan any, stop func()) bool {
	r.t.Helper()
	// The tick only asks whether the log has what the test waits for.
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case reason := <-ended:
			if _, crashed := reason.(crash); !crashed {
				r.t.Fatalf("the worker ended: %v", reason)
			}
			return true
		case event := <-r.host.Events():
			stop()
			<-ended
			if event == simulated.RebootRequested {
				if err := r.host.Boot(context.Background()); err != nil {
					r.t.Fatal(err)
				}
			}
			return true
		case <-tick.C:
			if done() {
				stop()
				<-ended
				return false
			}
		}
	}
}

// until starts workers until the log has the answer to an action.
func (r *rig) until(action message.Action) string {
	r.t.Helper()
	for r.life(func() bool { return r.station.answer(action) != "" }) {
	}
	return r.station.answer(action)
}

// effects counts the lines of the host's own record of an effect.
func (r *rig) effects(action string) int {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.host.Dir(), "effects.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Count(string(text), `"action":"`+action+`"`)
}

func (r *rig) prepare() {
	c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
	r.station.send(message.Record{Seq: 10, Kind: message.CommandAll, Body: c.Encode()})
}

func (r *rig) command(seq uint64, action message.Action) {
	c := message.Command{Action: action, Host: "h01"}
	r.station.send(message.Record{Seq: seq, Kind: message.CommandHost, Run: 10, Body: c.Encode()})
}
