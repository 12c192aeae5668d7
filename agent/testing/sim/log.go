package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// callLimit is how long one call to the log may take, as in jetstream.
const callLimit = 5 * time.Second

// server is the log's server: what outlives its crashes, and whether it runs. The
// world's lock guards it, and is held while anything is written.
type server struct {
	*memory.Log
	leases *memory.Keeper
	// down tells that the server does not run, full that its disk has no space.
	down, full bool
	// sent is what is known of the sending of the record at hand.
	sent oracle.Sending
	// newest is the last record, and written when it truly was written.
	newest  uint64
	written time.Time
	// passed is when the lease of each host passed to another process, begun when the
	// server was started last.
	passed map[string]time.Time
	begun  time.Time
}

var (
	errDown    = errors.New("sim: the log's server is down")
	errFull    = errors.New("sim: no space left on the log's disk")
	errNoReply = errors.New("sim: no answer")
	errDead    = errors.New("sim: this process is dead")
	errBroke   = errors.New("sim: the log cannot be followed any more")
)

func (w *World) newServer() *server {
	s := &server{Log: memory.New(), leases: memory.NewKeeper(), passed: map[string]time.Time{}}
	s.Name = "sim"
	s.Now = func() time.Time { return w.clocks[0].now().UTC() }
	s.Before = func(message.Record) error { return w.writable() }
	s.After = func(r message.Record) error {
		w.note("%v", shown(r))
		w.oracle.Record(r, s.sent)
		s.newest, s.written = r.Seq, time.Now()
		if w.fault("crash log after append", "") {
			w.crashLog()
			return errDown
		}
		return nil
	}
	return s
}

// writable reports why nothing can be written, with the world's lock held. The
// server may crash at that moment.
func (w *World) writable() error {
	switch {
	case w.log.down:
		return errDown
	case w.log.full:
		w.count("log: disk full")
		return errFull
	case w.fault("crash log before append", ""):
		w.crashLog()
		return errDown
	}
	return nil
}

// write writes to the log. sent is what is known of the sending.
func (w *World) write(sent oracle.Sending, f func(s *server) (uint64, error)) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log.down {
		return 0, errDown
	}
	w.log.sent = sent
	return f(w.log)
}

// shown is a record as the trace shows it.
type shown message.Record

func (r shown) String() string {
	kind := map[message.Kind]string{
		message.CommandAll: "command to all", message.CommandHost: "command to " + r.Host, message.EventRecord: "event",
		message.ReplyRecord: "reply of " + r.Host + " to " + string(r.Action),
	}[r.Kind]
	return fmt.Sprintf("log %d (%s) %s of run %d, epoch %d: %s", r.Seq, r.Time.Format(time.DateTime), kind, r.Run, r.Epoch, r.Body)
}

// crashLog ends the log's server, with the world's lock held, and starts it
// again after a while. The controller and the gate of the same process die with it.
func (w *World) crashLog() {
	w.log.down = true
	w.note("the log's server crashes")
	w.count("crashes of the log")
	w.after(time.Microsecond, func() { w.sites[0].die("crash with the log") })
	w.after(w.rng.span("log restart", 100*time.Millisecond, 20*time.Second), w.startLog)
}

func (w *World) startLog() {
	w.mu.Lock()
	w.log.down, w.log.begun = false, time.Now()
	w.mu.Unlock()
	w.note("the log's server runs again")
	for _, s := range w.sites {
		s.reconnected()
	}
	w.reconnect("")
}
