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
	last    uint64
	prepare sight
	// hosts are the newest commands to each host since the newest prepare, and
	// answered the hosts that have replied to the newest prepare.
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
	return Witness{hosts: map[string]sight{}, answered: map[string]bool{}}
}

// Fold takes the next record.
func (w *Witness) Fold(r message.Decoded) {
	w.last = r.Seq
	switch r.Kind {
	case message.CommandAll:
		w.prepare = sight{seq: r.Seq, at: r.Time, run: r.Seq, action: message.Prepare}
		clear(w.hosts)
		clear(w.answered)
	case message.CommandHost:
		s := sight{seq: r.Seq, at: r.Time, run: r.Run}
		if r.Command != nil {
			s.action = r.Command.Action
		}
		w.hosts[r.Host] = s
	case message.ReplyRecord:
		w.reply(r)
	}
}

func (w *Witness) reply(r message.Decoded) {
	if r.Run == w.prepare.run && r.Action == message.Prepare {
		w.answered[r.Host] = true
	}
	if s := w.hosts[r.Host]; s.seq != 0 && s.run == r.Run && s.action == r.Action {
		s.answered = true
		w.hosts[r.Host] = s
	}
}

// newest returns the newest command that a host can know.
func (w *Witness) newest(host string) sight {
	if s, some := w.hosts[host]; some {
		return s
	}
	s := w.prepare
	s.answered = w.answered[host]
	return s
}

// Compare returns what a host knows of the log that is not on it; nil when the log has
// it all, as far as this can be told. The caller has folded all that was on the log when
// the host said so, and the host has spoken of this very log.
func (w *Witness) Compare(host string, p message.Position) error {
	newest := w.newest(host)
	switch {
	case p.Seq > w.last:
		return fmt.Errorf("host %s knows record %d, and the log ends at record %d", host, p.Seq, w.last)
	case p.Seq > newest.seq:
		return fmt.Errorf("host %s knows command %d, and the newest one to it on the log is %d", host, p.Seq, newest.seq)
	case p.Seq < newest.seq:
		return nil
	case !p.At.IsZero() && !p.At.Equal(newest.at):
		return fmt.Errorf("host %s knows record %d of %s, and the one on the log is of %s", host, p.Seq, stamp(p.At), stamp(newest.at))
	case p.Answered && p.Action == newest.action && !newest.answered:
		return fmt.Errorf("host %s has replied to command %d (%s of run %d), and its reply is not on the log", host, p.Seq, newest.action, newest.run)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
