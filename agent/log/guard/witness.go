package guard

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Witness compares what hosts have seen of a log with what is on it. A site whose
// folder was replaced by an older copy, guard and all, is found out by them alone.
//
// It remembers the newest command to each host: nothing else is ever compared, for a
// host whose journal is of an older command may simply have been away.
type Witness struct {
	// first and last are the sequences of the first and the last record.
	first, last uint64
	// prepare is the sequence of the newest prepare of any environment.
	prepare uint64
	// runs are the newest runs by environment, and home are those of the hosts that are not
	// in the default environment.
	runs map[string]*lastRun
	home map[string]*lastRun
}

// lastRun is the newest run of an environment.
type lastRun struct {
	prepare sight
	// hosts are the newest commands to each host since the prepare, and answered the hosts
	// that have replied to it.
	hosts    map[string]sight
	answered map[string]bool
}

// sight is a command on the log.
type sight struct {
	seq      uint64
	at       time.Time
	run      uint64
	action   message.Action
	answered bool
}

// NewWitness makes a Witness that expects a log from its first record on.
func NewWitness() Witness {
	return Witness{runs: map[string]*lastRun{}, home: map[string]*lastRun{}}
}

// Fold takes the next record.
func (w *Witness) Fold(r message.Decoded) {
	w.last = r.Seq
	if w.first == 0 {
		w.first = r.Seq
	}
	switch r.Kind {
	case message.CommandAll:
		w.prepared(r)
	case message.CommandHost:
		s := sight{seq: r.Seq, at: r.Time, run: r.Run}
		if r.Command != nil {
			s.action = r.Command.Action
		}
		w.of(r.Host).hosts[r.Host] = s
	case message.ReplyRecord:
		w.of(r.Host).reply(r)
	case message.EventRecord:
	}
}

// prepared begins the next run of an environment, which its members are in from then on.
func (w *Witness) prepared(r message.Decoded) {
	run := w.runs[r.Environment]
	if run == nil {
		run = newLastRun()
		w.runs[r.Environment] = run
	}
	w.prepare = r.Seq
	run.prepare = sight{seq: r.Seq, at: r.Time, run: r.Seq, action: message.Prepare}
	clear(run.hosts)
	clear(run.answered)
	if r.Command == nil {
		return
	}
	for _, host := range r.Command.Hosts {
		if r.Environment != "" {
			w.home[host] = run
		} else {
			delete(w.home, host)
		}
	}
}

func newLastRun() *lastRun {
	return &lastRun{hosts: map[string]sight{}, answered: map[string]bool{}}
}

// of returns the newest run of the environment of a host.
func (w *Witness) of(host string) *lastRun {
	if run := w.home[host]; run != nil {
		return run
	}
	if w.runs[""] == nil {
		w.runs[""] = newLastRun()
	}
	return w.runs[""]
}

func (l *lastRun) reply(r message.Decoded) {
	if r.Run == l.prepare.run && r.Action == message.Prepare {
		l.answered[r.Host] = true
	}
	if s := l.hosts[r.Host]; s.seq != 0 && s.run == r.Run && s.action == r.Action {
		s.answered = true
		l.hosts[r.Host] = s
	}
}

// newest returns the newest command that a host can know.
func (l *lastRun) newest(host string) sight {
	if s, some := l.hosts[host]; some {
		return s
	}
	s := l.prepare
	s.answered = l.answered[host]
	return s
}

// beyond is the newest record that a host of no named environment can know besides its own
// commands: a gate that has started anew gives the prepare of the default environment to each
// host whose own it does not know, and such a host may be of any.
func (w *Witness) beyond(host string) uint64 {
	if w.home[host] == nil {
		return w.prepare
	}
	return w.of("").prepare.seq
}

// Compare returns what a host knows of the log that is not on it; nil when the log has
// it all, as far as this can be told. The caller has folded all that was on the log when
// the host said so, and the host has spoken of this very log.
func (w *Witness) Compare(host string, p message.Position) error {
	newest := w.of(host).newest(host)
	switch {
	case p.Seq > w.last:
		return fmt.Errorf("host %s knows record %d, and the log ends at record %d", host, p.Seq, w.last)
	case p.Seq < w.first:
		return nil // It was trimmed.
	case p.Seq > newest.seq && p.Seq > w.beyond(host):
		return fmt.Errorf("host %s knows command %d, and the newest one to it on the log is %d", host, p.Seq, newest.seq)
	case p.Seq != newest.seq:
		return nil
	case !p.At.IsZero() && !p.At.Equal(newest.at):
		return fmt.Errorf("host %s knows record %d of %s, and the one on the log is of %s", host, p.Seq, stamp(p.At), stamp(newest.at))
	case p.Answered && p.Action == newest.action && !newest.answered:
		return fmt.Errorf("host %s has replied to command %d (%s of run %d), and its reply is not on the log", host, p.Seq, newest.action, newest.run)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
