//go:build linux

package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// victim is a cell of the matrix: a process that is killed at a visit of a label.
type victim struct {
	process, label string
	// visit is which visit of a run it is, counted from 1.
	visit int
	// at is when in a fleet's life the label is visited.
	at phase
	// tries counts the runs in which the label was not visited at all.
	tries int
	hit   bool
	hitAt time.Time
	// beside tells that the runs of all environments were under way then.
	beside bool
}

// phase is when a label is visited.
type phase int

const (
	// inRun labels are visited while a run is under way, atStart ones when a
	// process starts, atBirth ones only when a host starts for the first time.
	inRun phase = iota
	atStart
	atBirth
)

// judge decides which process is killed where. The processes of a fleet tell
// it each label that they visit and wait for its word.
type judge struct {
	listener net.Listener
	mu       sync.Mutex
	// visits counts by process and label since the last reset, order is theirs.
	visits map[spot]int
	order  []spot
	armed  []*victim
	// at is called at the first visit of a spot, which waits for it.
	at map[spot]func()
	// kept are the hosts that the site has on disk.
	kept map[string]bool
}

// spot is a label of a process.
type spot struct{ process, label string }

// rebooted is where a worker's machine goes down: the reboot was accepted.
const rebooted = "worker after reboot"

func newJudge(t *testing.T) *judge {
	t.Helper()
	// An abstract socket leaves no file and has no long path.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "@osupgrade-crash-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{listener: listener, visits: map[spot]int{}, kept: map[string]bool{}}
	go j.accept()
	return j
}

func (j *judge) address() string { return j.listener.Addr().String() }

// close has the processes that are left end themselves.
func (j *judge) close() { _ = j.listener.Close() }

func (j *judge) accept() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for {
		conn, err := j.listener.Accept()
		if err != nil {
			return
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		go j.hear(conn)
	}
}

func (j *judge) hear(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		process, label, _ := strings.Cut(lines.Text(), " ")
		if process != "site" {
			label = "worker " + label
		}
		j.callAt(spot{process, label})
		verdict := []byte("g")
		if host, is := strings.CutPrefix(label, "server kept host "); is {
			j.keep(host)
		} else if j.kills(spot{process, label}) {
			verdict = []byte("k")
		}
		if _, err := conn.Write(verdict); err != nil {
			return
		}
	}
}

func (j *judge) callAt(s spot) {
	j.mu.Lock()
	call := j.at[s]
	delete(j.at, s)
	j.mu.Unlock()
	if call != nil {
		call()
	}
}

func (j *judge) kills(s spot) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.visits[s]++; j.visits[s] == 1 {
		j.order = append(j.order, s)
	}
	for _, c := range j.armed {
		if !c.hit && c.process == s.process && c.label == s.label && j.visits[s] >= c.visit {
			c.hit, c.hitAt = true, time.Now()
			return true
		}
	}
	return s.label == rebooted
}

// reset begins to count anew and kills at these cells from now on.
func (j *judge) reset(cells ...*victim) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.visits, j.order, j.armed = map[spot]int{}, nil, cells
}

// killed reports whether a process was killed since the last reset.
func (j *judge) killed(process string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.armed, func(c *victim) bool { return c.hit && c.process == process })
}

// keep notes that the site has a host on disk.
func (j *judge) keep(host string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kept[host] = true
}

// keeps counts the hosts that the site has on disk.
func (j *judge) keeps() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.kept)
}

// seen returns the spots that were visited since the last reset, and how often,
// and kills nothing more.
func (j *judge) seen() (order []spot, visits map[spot]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.armed = nil
	return slices.Clone(j.order), maps.Clone(j.visits)
}
