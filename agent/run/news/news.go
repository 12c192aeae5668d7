// Package news decides what people and programs are told of as it happens: which record
// of the log, and which wait of a run, is which news.
//
// It is a pure function of the records and the time: a controller that folds the same
// records tells the same news with the same ids, so a restart neither loses nor repeats
// any. It does no I/O and knows nothing of webhooks.
//
// What becomes what:
//
//	record or state of a run                          news
//	prepare of a run                                  run.opened
//	the last host of a stage is done, or its step     stage.done
//	a host has failed                                 host.failed (the first 100 of a run)
//	no host is under way, none may start, and only
//	  hosts that recover or a person can change that  run.blocked (20 of a run at most)
//	the query of a disruption budget has kept all
//	  hosts in service for half a minute              run.blocked (once until a host leaves)
//	a host is overdue in its phase                    run.overdue (the first 100 of a run)
//	a pause, or an approval that is due               run.waiting
//	hosts plan different versions of a package        run.differing (once)
//	finished                                          run.finished
//	missed                                            window.missed, or window.up-to-date
//	somebody has skipped a window                     window.skipped
//	a calendar could not be fetched 3 times in a row  calendar.failing
//	it can be fetched again                           calendar.recovered
//	it is fetched, and has no events any more         calendar.emptied
//	a host has begun to wait for approval             host.waiting
package news

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// maxHosts bounds the failed hosts of a run that are told of, and those that are
	// overdue, maxBlocked how often a run is told to be blocked: hosts cannot crowd out all
	// other news.
	maxHosts, maxBlocked = 100, 20
	// maxText bounds a text, in bytes.
	maxText = 1000
)

// Teller knows what was told of one run.
type Teller struct {
	// tenant and log, the identity of its log, are part of each id.
	tenant, log string
	run         uint64
	// environment is that of the run; empty for the default one.
	environment string
	told        map[string]bool
	// hosts, overdue and blocked count those that were told of.
	hosts, overdue, blocked int
}

// NewTeller makes a Teller that has told nothing, and is of no run.
func NewTeller(tenant, log string) *Teller {
	return &Teller{tenant: tenant, log: log, told: map[string]bool{}}
}

// Of returns a Teller of the run of an environment that a record has opened, which has told nothing
// of it. The default environment has no name.
func (t *Teller) Of(opened uint64, environment string) *Teller {
	of := NewTeller(t.tenant, t.log)
	of.run, of.environment = opened, environment
	return of
}

// owner is whose a run or a window is, in a text.
func (t *Teller) owner() string {
	if t.environment == "" {
		return "tenant " + t.tenant
	}
	return "environment " + t.environment + " of tenant " + t.tenant
}

// Record returns what a record that was just folded into a run tells.
func (t *Teller) Record(r *run.State, record message.Decoded) (all []v1.News) {
	if r.ID != 0 && t.first("opened") {
		all = append(all, t.opened(r))
	}
	if !r.Over() {
		all = append(all, t.stages(r, record.Time)...)
	}
	if texts := r.DifferingTexts(); len(texts) > 0 && t.first("differing") {
		all = append(all, t.differing(r, record.Time, texts))
	}
	all = append(all, t.failures(r, record)...)
	if r.Over() && t.first("finished") {
		all = append(all, t.finished(r))
	}
	return all
}

// Waiting returns what a run tells because of what it waits for at a time. silent are the hosts
// that are not heard of, and since when; in is how commands name the environment of the run, as
// run.In does.
func (t *Teller) Waiting(r *run.State, now time.Time, silent map[string]time.Time, in string) []v1.News {
	return append(t.overdueHosts(r, now, silent), t.person(r, now, in)...)
}

// overdueHosts returns the hosts that are overdue, each once for a phase.
func (t *Teller) overdueHosts(r *run.State, now time.Time, silent map[string]time.Time) (all []v1.News) {
	if t.overdue >= maxHosts {
		return nil
	}
	for _, o := range r.Overdue(now, silent) {
		key := fmt.Sprintf("overdue %s %s%s", o.Host, o.Awaited.Action, o.Awaited.Task)
		if t.overdue >= maxHosts || !t.first(key) {
			continue
		}
		t.overdue++
		why, w := o.Why(), view.WaitingFor(o.Waiting)
		if o.Usual >= time.Second && o.Silent.IsZero() {
			why += "; other hosts took " + window.FormatDuration(o.Usual.Round(time.Second))
		}
		w.OverdueSince = view.OptionalTime(o.From)
		all = append(all, t.ofRun(r, v1.NewsRunOverdue, key, o.From, v1.NewsData{
			Stage: o.Stage, Host: o.Host, WaitingFor: w, Command: run.Command(fmt.Sprintf("runs %d --host %s --output", r.Key(), o.Host)),
			Text: fmt.Sprintf("Run %d of %s has been waiting for %s since %s: %s.", r.Key(), t.owner(), o.Detail, stamp(o.Since), why),
		}))
	}
	return all
}

// person returns whether a run waits for a person.
func (t *Teller) person(r *run.State, now time.Time, in string) []v1.News {
	w, blocked, some := r.NeedsPerson(now)
	if !some {
		return nil
	}
	// The time of the wait is a fact of the log, so that the id is, too.
	key := fmt.Sprintf("%s %s %d", w.What, w.Stage, w.Since.UnixNano())
	if blocked && t.blocked >= maxBlocked || !t.first(key) {
		return nil
	}
	data, kind := waitsFor(w), v1.NewsRunWaiting
	switch {
	case blocked:
		t.blocked++
		kind, data = v1.NewsRunBlocked, t.blockedBy(r, w, unblock(*view.WaitingFor(w)))
	case w.What == run.ForApproval:
		data.Command = run.TypedIn(in, "approve "+w.Stage)
		data.Text = fmt.Sprintf("Run %d of %s waits for a person: %s.", r.Key(), t.owner(), w.Detail)
	default:
		data.Command = run.TypedIn(in, "resume")
		data.Text = fmt.Sprintf("Run %d of %s waits for a person: %s.", r.Key(), t.owner(), w.Detail)
	}
	return []v1.News{t.ofRun(r, kind, key, w.Since, data)}
}

// unblock is what a person types to find out about a wait of a run that is blocked, or to end it.
func unblock(w v1.WaitingFor) string {
	switch {
	case w.LacksHost():
		return run.Command("hosts")
	case len(w.Hosts) == 0: // A budget lets no host leave service.
		return run.Command("edit budgets")
	}
	return run.Typed("release NAME")
}

// Refused returns what a run tells whose hosts the query of a budget keeps in service, by its answer.
// The log says nothing of queries: so it is told once for a budget until a host has left service.
func (t *Teller) Refused(r *run.State, budget string, a run.Answer, now time.Time) []v1.News {
	key := fmt.Sprintf("query %s %d", budget, r.TakenSeq)
	if !r.IsBlockedBy(a, now) || t.blocked >= maxBlocked || !t.first(key) {
		return nil
	}
	t.blocked++
	w := a.Waiting(budget)
	return []v1.News{t.ofRun(r, v1.NewsRunBlocked, key, w.Since, t.blockedBy(r, w, run.Command("edit budgets")))}
}

// blockedBy says what a run that is blocked waits for, and what a person can type.
func (t *Teller) blockedBy(r *run.State, w run.Waiting, command string) v1.NewsData {
	data := waitsFor(w)
	data.Command = command
	data.Text = fmt.Sprintf("Run %d of %s is blocked: it waits for %s.", r.Key(), t.owner(), w.Detail)
	return data
}

// waitsFor is what news of a run tell of what it waits for.
func waitsFor(w run.Waiting) v1.NewsData {
	shown := view.WaitingFor(w)
	shown.Detail = text.Cut(w.Detail, maxText, "…")
	return v1.NewsData{Stage: w.Stage, WaitingFor: shown}
}

// Missed returns what the record of a window without a run tells.
func (t *Teller) Missed(seq uint64, at time.Time, m message.Missed) v1.News {
	of := *t
	of.environment = m.Environment
	kind, did := v1.NewsWindowMissed, "missed a window"
	if m.UpToDate() {
		kind, did = v1.NewsWindowUpToDate, "needed no run in a window"
	}
	said := fmt.Sprintf("%s %s, from %s to %s", of.owner(), did, stamp(m.Window), stamp(m.WindowEnd))
	said = strings.ToUpper(said[:1]) + said[1:]
	if m.Reason != "" {
		said += ": " + m.Reason
	}
	n := of.news(kind, "missed "+strconv.FormatUint(seq, 10), at, v1.NewsData{
		Reason: text.Cut(m.Reason, maxText, "…"), Window: view.OptionalTime(m.Window), WindowEnd: view.OptionalTime(m.WindowEnd), Text: said + ".",
	})
	n.ID = id(t.tenant, t.log, 0, "missed "+strconv.FormatUint(seq, 10))
	return n
}

// recent is for how long it is told that a calendar can be fetched again, or has become empty, and that
// a window was skipped: news of the same id may be kept no more after that.
const recent = 24 * time.Hour

// Skipped returns what the windows tell that people have skipped lately in an environment; default has
// no name.
func (t *Teller) Skipped(environment string, skips v1.Skips, now time.Time) (all []v1.News) {
	of := *t
	of.environment = environment
	for _, w := range skips.Windows {
		if !w.At.After(now.Add(-recent)) {
			continue
		}
		by := ""
		if w.By != "" {
			by = " by " + w.By
		}
		key := fmt.Sprintf("skipped %s %d %d", environment, w.Start.UnixNano(), w.At.UnixNano())
		n := of.news(v1.NewsWindowSkipped, key, w.At, v1.NewsData{
			RequestedBy: w.By, Reason: text.Cut(w.Reason, maxText, "…"), Window: view.OptionalTime(w.Start), WindowEnd: view.OptionalTime(w.End),
			Text: fmt.Sprintf("The window of %s from %s to %s was skipped%s: %s.", of.owner(), stamp(w.Start), stamp(w.End), by, strings.TrimSuffix(w.Reason, ".")),
		})
		n.ID = id(t.tenant, t.log, 0, key)
		all = append(all, n)
	}
	return all
}

// Calendar returns what the copy of a calendar with a URL tells at a time.
func (t *Teller) Calendar(name string, declared v1.Calendar, kept v1.CalendarCopy, now time.Time) (all []v1.News) {
	tell := func(kind string, at time.Time, why, said string) {
		key := fmt.Sprintf("%s %s %d", kind, name, at.UnixNano())
		n := t.news(kind, key, at, v1.NewsData{Calendar: name, Error: text.Cut(why, maxText, "…"), Text: said})
		if kind == v1.NewsCalendarFailing {
			n.Data.Command = run.Command("calendar refresh " + name)
		}
		n.ID = id(t.tenant, t.log, 0, key)
		all = append(all, n)
	}
	about, recently := fmt.Sprintf("calendar %s of tenant %s from %s", name, t.tenant, declared.Host()), now.Add(-recent)
	switch {
	case kept.URL != declared.URL:
		return nil
	case kept.Failing() && kept.Source == declared.URL:
		tell(v1.NewsCalendarFailing, kept.FailingSince, kept.Error, fmt.Sprintf(
			"The site has been unable to fetch %s since %s: %s. The events fetched at %s stay in force.", about, stamp(kept.FailingSince), kept.Error, stamp(kept.FetchedAt)))
	case kept.Failing():
		tell(v1.NewsCalendarFailing, kept.FailingSince, kept.Error, fmt.Sprintf(
			"The site has never been able to fetch %s and has tried since %s: %s. %s", about, stamp(kept.FailingSince), kept.Error, consequence(declared.Kind)))
	case kept.RecoveredAt.After(recently):
		tell(v1.NewsCalendarRecovered, kept.RecoveredAt, "", fmt.Sprintf("The site can fetch %s again.", about))
	}
	if kept.Source == declared.URL && len(kept.Events) == 0 && kept.EmptiedAt.After(recently) {
		tell(v1.NewsCalendarEmptied, kept.EmptiedAt, "", fmt.Sprintf("The source of %s has no events any more since %s. %s", about, stamp(kept.EmptiedAt), emptied(declared.Kind)))
	}
	return all
}

// emptied says what follows from a calendar that has no events any more.
func emptied(kind string) string {
	if kind == string(calendar.Freeze) {
		return "It freezes nothing now: runs may start in every window."
	}
	return "It opens no window now."
}

// HostWaiting returns what a host tells that waits for approval.
func (t *Teller) HostWaiting(h v1.WaitingHost) v1.News {
	key := fmt.Sprintf("waiting %s %s %d", h.Host, h.PublicKey, h.At.UnixNano())
	n := t.news(v1.NewsHostWaiting, key, h.At, v1.NewsData{
		Host: h.Host, Command: run.Command("approve-host " + h.Host),
		Text: fmt.Sprintf("Host %s of tenant %s waits for approval, until %s. It asked from %s, with the key %s.", h.Host, t.tenant, stamp(h.Expires), h.From, h.PublicKey),
	})
	n.ID = id(t.tenant, t.log, 0, key)
	return n
}

// consequence says what follows from a calendar of which no event is known.
func consequence(kind string) string {
	if kind == string(calendar.Freeze) {
		return "No run starts until it succeeds, because a freeze may apply."
	}
	return "The calendar opens no window until it succeeds."
}

func (t *Teller) opened(r *run.State) v1.News {
	said := fmt.Sprintf("Run %d of %s was opened with %s", r.Key(), t.owner(), text.Count(r.Size(), "host", "hosts"))
	if r.Release != nil {
		said += ", to release " + r.Release.Name
	}
	if r.Until != "" {
		said += " until stage " + r.Until
	}
	if r.IsRollback() {
		said += ", as the rollback of " + r.RollsBack.Runs() + ","
	}
	switch {
	case r.By != "" && r.Why != "":
		said += fmt.Sprintf(" by %s: %s", r.By, r.Why)
	case r.By != "":
		said += " by " + r.By
	case r.Trigger == message.TriggerWindow:
		said += " for its window"
	}
	return t.ofRun(r, v1.NewsRunOpened, "opened", r.OpenedAt, v1.NewsData{
		Trigger: r.Trigger, RequestedBy: r.By, RequestReason: text.Cut(r.Why, maxText, "…"), Hosts: r.Size(),
		Text: fmt.Sprintf("%s; it ends by %s.", said, stamp(r.EndsBy())),
	})
}

// differing tells that hosts plan different versions of the same packages.
func (t *Teller) differing(r *run.State, at time.Time, texts []string) v1.News {
	return t.ofRun(r, v1.NewsRunDiffering, "differing", at, v1.NewsData{
		Command: run.Command(fmt.Sprintf("runs %d", r.Key())),
		Text:    fmt.Sprintf("Hosts of run %d of %s plan different versions of release %s: %s.", r.Key(), t.owner(), r.Release.Name, text.Cut(strings.Join(texts, "; "), maxText, "…")),
	})
}

// stages returns the stages that were done by the time of a record.
func (t *Teller) stages(r *run.State, now time.Time) (all []v1.News) {
	for _, g := range r.Stages(now) {
		if !g.Done() || !t.first("stage "+g.Name) {
			continue
		}
		if g.Step != nil {
			said := "Step"
			if g.Undo {
				said = "Undo of step"
			}
			all = append(all, t.ofRun(r, v1.NewsStageDone, "stage "+g.Name, now, v1.NewsData{
				Stage: g.Name, Text: fmt.Sprintf("%s %s of run %d of %s is done.", said, g.Name, r.Key(), t.owner()),
			}))
			continue
		}
		said := fmt.Sprintf("Stage %s of run %d of %s is done: %d of %s %s", g.Name, r.Key(), t.owner(), g.Upgraded, text.Count(g.Size, "host", "hosts"), r.HostsAre())
		if g.Failed > 0 {
			said += fmt.Sprintf(", %d failed", g.Failed)
		}
		all = append(all, t.ofRun(r, v1.NewsStageDone, "stage "+g.Name, now, v1.NewsData{
			Stage: g.Name, Hosts: g.Size, Upgraded: g.Upgraded, Failed: g.Failed, Text: said + ".",
		}))
	}
	return all
}

// failures returns the hosts that have failed by a record.
func (t *Teller) failures(r *run.State, record message.Decoded) (all []v1.News) {
	if t.hosts >= maxHosts || r.Count(run.HostFailed) == 0 {
		return nil
	}
	for _, name := range record.Hosts() {
		h, member := r.Host(name)
		if !member || h.Status != run.HostFailed || t.hosts >= maxHosts || !t.first("host "+name) {
			continue
		}
		t.hosts++
		data := v1.NewsData{Stage: h.Stage, Host: name, Class: string(h.Class), Error: text.Cut(h.Error, maxText, "…")}
		data.Text = fmt.Sprintf("Host %s failed in run %d of %s: %s", name, r.Key(), t.owner(), h.Error)
		all = append(all, t.ofRun(r, v1.NewsHostFailed, "host "+name, record.Time, data))
	}
	return all
}

func (t *Teller) finished(r *run.State) v1.News {
	data := v1.NewsData{
		Result: string(r.Result), Reason: text.Cut(r.Reason, maxText, "…"), Hosts: r.Size(), Upgraded: r.Count(run.Upgraded), UpToDate: r.UpToDate(), Failed: r.Count(run.HostFailed),
	}
	how := r.Reason
	if how == "" {
		how = run.Achieved(data.Hosts, data.Upgraded, data.UpToDate)
	}
	data.Text = fmt.Sprintf("Run %d of %s ended %s after %s: %s.", r.Key(), t.owner(), r.Result, window.FormatDuration(r.EndedAt.Sub(r.OpenedAt).Round(time.Second)), how)
	return t.ofRun(r, v1.NewsRunFinished, "finished", r.EndedAt, data)
}

// first reports whether a key is told for the first time.
func (t *Teller) first(key string) bool {
	if t.told[key] {
		return false
	}
	t.told[key] = true
	return true
}

// ofRun is news of a run.
func (t *Teller) ofRun(r *run.State, kind, key string, at time.Time, data v1.NewsData) v1.News {
	data.Run, data.RollbackOf = r.Key(), r.RollsBack.Of
	if r.Release != nil {
		data.Release = r.Release.Name
	}
	return t.news(kind, key, at, data)
}

func (t *Teller) news(kind, key string, at time.Time, data v1.NewsData) v1.News {
	data.Tenant, data.Environment, data.Text = t.tenant, t.environment, text.Cut(data.Text, maxText, "…")
	return v1.News{ID: id(t.tenant, t.log, t.run, key), Type: kind, Timestamp: view.Time(at), Data: data}
}

// id names news by what they are about, in a text that may be in a header and in a subject.
func id(tenant, log string, run uint64, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", tenant, log, run, key))
	return "msg_" + hex.EncodeToString(sum[:16])
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
