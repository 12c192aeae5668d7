package controller

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// warningFor is how long a warning is shown after it was noticed last. What causes
	// one repeats each minute or two.
	warningFor = 10 * time.Minute
	// maxWarnings bounds the warnings of a tenant.
	maxWarnings = 1000
	// maxKeyWarnings bounds those about keys: whoever can connect can cause them, in
	// the name of any host.
	maxKeyWarnings = 100
	// maxShownWarnings bounds those in the situation.
	maxShownWarnings = 20
	// fewWarnings is how many of them are logged in throttle.Again.
	fewWarnings = 20
	// clockLimit is how much the clocks of a host and the site may differ.
	clockLimit = time.Minute
)

// warnings are what is wrong with hosts beside their runs. Gates and the server note
// them from goroutines of their own, so they have a lock. They are not stored: what
// is still wrong is noticed again.
type warnings struct {
	tenant string
	log    *slog.Logger
	mu     sync.Mutex
	all    map[warningKey]*warning
}

type warningKey struct {
	host string
	kind message.WarningKind
}

type warning struct {
	text        string
	since, last time.Time
}

func newWarnings(o Options) *warnings {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &warnings{tenant: o.Tenant, log: throttle.Log(log, fewWarnings, throttle.Again), all: map[warningKey]*warning{}}
}

// note notes a warning, and reports whether it is new.
func (w *warnings) note(host string, kind message.WarningKind, text string, now time.Time) (isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := warningKey{host, kind}
	if known := w.all[key]; known != nil && now.Sub(known.last) < warningFor {
		known.text, known.last = text, now
		return false
	}
	w.expire(now)
	if len(w.all) >= maxWarnings || kind == message.WarnKey && w.count(kind) >= maxKeyWarnings {
		return false
	}
	w.all[key] = &warning{text: text, since: now, last: now}
	if kind != message.WarnKey { // The server has logged it.
		w.log.Warn("host has a warning", "tenant", w.tenant, "host", host, "kind", kind, "warning", text)
	}
	return true
}

// count returns the number of warnings of a kind, with the lock held.
func (w *warnings) count(kind message.WarningKind) (n int) {
	for key := range w.all {
		if key.kind == kind {
			n++
		}
	}
	return n
}

// clear ends a warning, and reports whether there was one.
func (w *warnings) clear(host string, kind message.WarningKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := warningKey{host, kind}
	_, was := w.all[key]
	delete(w.all, key)
	return was
}

// expire ends the warnings that were not noticed again, with the lock held. A clock
// that was set back ends none, and does not keep any for longer.
func (w *warnings) expire(now time.Time) {
	for key, known := range w.all {
		if now.Before(known.last) {
			known.last = now
		}
		if now.Sub(known.last) >= warningFor {
			delete(w.all, key)
		}
	}
}

// list returns the warnings of one host, or of all if it is empty: the oldest first,
// and behind all others those about keys.
func (w *warnings) list(host string, now time.Time) []v1.Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(now)
	var list []v1.Warning
	for key, known := range w.all {
		if host == "" || key.host == host {
			list = append(list, v1.Warning{Host: key.host, Kind: string(key.kind), Text: known.text, Since: view.Time(known.since)})
		}
	}
	slices.SortFunc(list, func(a, b v1.Warning) int {
		return cmp.Or(about(a)-about(b), a.Since.Compare(b.Since), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// about is 1 for a warning about a key.
func about(w v1.Warning) int {
	if w.Kind == string(message.WarnKey) {
		return 1
	}
	return 0
}

// next returns when the next warning ends if it is not noticed again; zero when there
// is none.
func (w *warnings) next(now time.Time) (at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire(now)
	for _, known := range w.all {
		at = times.Sooner(at, known.last.Add(warningFor))
	}
	return at
}

// Warn notes that something is wrong with a host beside its runs. It may be called
// at any time and does not block.
func (c *Controller) Warn(host string, kind message.WarningKind, text string) {
	if c.warnings.note(host, kind, text, c.o.Now()) {
		c.watchers.Notify()
	}
}

// clockText says by how much the clock of a host differs from the site's; empty if it
// differs by no more than clockLimit. before and now are the differences of its last
// two heartbeats: one that was held up on its way looks like a clock that is behind.
func clockText(before, now time.Duration) string {
	if min(before.Abs(), now.Abs()) <= clockLimit || (before < 0) != (now < 0) {
		return ""
	}
	direction := "ahead of"
	if now < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("its clock is %s %s the site's: set the clock of the host, or the site's if many hosts have this warning",
		now.Abs().Round(clockLimit/6), direction)
}

// rolledBackText says from which version the machine of a host went back by itself, and what
// to do; empty when there is none.
func rolledBackText(versions []message.RolledBackVersion) string {
	if len(versions) == 0 {
		return ""
	}
	last := versions[len(versions)-1]
	text := fmt.Sprintf("its machine fell back by itself at %s: from version %s to %s; a plan holds %s back until there is another version; to offer it again, type on the host: osupgrade-agent worker accept %s",
		last.At.UTC().Format(time.RFC3339), last.Version, last.Running, last.Version, last.Version)
	if more := len(versions) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d before)", more)
	}
	return text
}
