package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// callLimit is how long one call to the log may take, as in jetstream.
const callLimit = 5 * time.Second

// replyKey names what a host may answer once.
type replyKey struct {
	run    uint64
	action message.Action
	host   string
}

// stream is the log itself. What is in it survives everything; the world's
// lock guards it.
type stream struct {
	// records are those from the sequence first on.
	records []message.Record
	first   uint64
	// lastCommand is the newest record of a controller, prepare the newest
	// prepare.
	lastCommand, prepare uint64
	replies              map[replyKey]bool
	// grew is closed when there is a new record.
	grew chan struct{}
	// down tells that the server does not run, full that its disk has no space.
	down, full bool
}

func newStream() *stream {
	return &stream{first: 1, replies: map[replyKey]bool{}, grew: make(chan struct{})}
}

func (s *stream) last() uint64 { return s.first + uint64(len(s.records)) - 1 }

func (s *stream) at(seq uint64) (message.Record, bool) {
	if seq < s.first || seq > s.last() {
		return message.Record{}, false
	}
	return s.records[seq-s.first], true
}

var (
	errDown    = errors.New("sim: the log's server is down")
	errFull    = errors.New("sim: no space left on the log's disk")
	errNoReply = errors.New("sim: no answer")
	errDead    = errors.New("sim: this process is dead")
	errBroke   = errors.New("sim: the log cannot be followed any more")
)

// store writes a record, with the world's lock held. The server may crash
// before, and after.
func (w *World) store(r message.Record, sent time.Time) (uint64, error) {
	switch {
	case w.log.down:
		return 0, errDown
	case w.log.full:
		w.count("log: disk full")
		return 0, errFull
	case w.fault("crash log before append", ""):
		w.crashLog()
		return 0, errDown
	}
	r.Seq, r.Time = w.log.last()+1, w.clocks[0].now().UTC()
	w.log.records = append(w.log.records, r)
	switch r.Kind {
	case message.CommandAll:
		w.log.prepare, w.log.lastCommand = r.Seq, r.Seq
	case message.CommandHost, message.EventRecord:
		w.log.lastCommand = r.Seq
	case message.ReplyRecord:
		w.log.replies[replyKey{r.Run, r.Action, r.Host}] = true
	}
	close(w.log.grew)
	w.log.grew = make(chan struct{})
	w.note("%v", shown(r))
	w.oracle.Record(r, sent)
	if w.fault("crash log after append", "") {
		w.crashLog()
		return 0, errDown
	}
	w.push(r)
	return r.Seq, nil
}

// shown formats a record for the trace.
type shown message.Record

func (r shown) String() string {
	kind := map[message.Kind]string{
		message.CommandAll: "command to all", message.CommandHost: "command to " + r.Host, message.EventRecord: "event",
		message.ReplyRecord: "reply of " + r.Host + " to " + string(r.Action),
	}[r.Kind]
	return fmt.Sprintf("log %d (%s) %s of run %d: %s", r.Seq, r.Time.Format(time.DateTime), kind, r.Run, r.Body)
}

// crashLog ends the log's server, with the world's lock held, and starts it
// again after a while. The controller of the same process dies with it.
func (w *World) crashLog() {
	w.log.down = true
	w.note("the log's server crashes")
	w.count("crashes of the log")
	w.after(time.Microsecond, func() { w.sites[0].die("crash with the log") })
	w.after(w.rng.span("log restart", 100*time.Millisecond, 20*time.Second), w.startLog)
}

func (w *World) startLog() {
	w.mu.Lock()
	w.log.down = false
	w.seats.begun = time.Now()
	for _, s := range w.seats.byHost {
		s.heard, s.session = time.Time{}, nil
	}
	w.mu.Unlock()
	w.note("the log's server is back")
	w.reconnect("")
}
