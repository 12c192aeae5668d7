package v1

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Run is one pass over the hosts of a tenant, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/runs.
type Run struct {
	// ID is the log sequence of the run's prepare command.
	ID uint64 `json:"id"`
	// Phase is open, preparing, upgrading or finished.
	Phase string `json:"phase"`
	// Result is empty until the run is finished, then completed, partial,
	// failed, aborted or timed-out.
	Result string `json:"result,omitempty"`
	// Reason says why the run ended as it did, or why it does not continue.
	Reason string `json:"reason,omitempty"`
	// Trigger is window or manual.
	Trigger string `json:"trigger"`
	// RequestedBy is who started it by hand, RequestReason why.
	RequestedBy   string `json:"requested-by,omitempty"`
	RequestReason string `json:"request-reason,omitempty"`
	// Environment is the environment whose hosts it upgrades; absent for the default one.
	Environment string `json:"environment,omitempty"`
	// Release is what the run installs; absent for a run without a release, whose hosts decide what
	// they install.
	Release *RunRelease `json:"release,omitempty"`
	// RetryOf is the run that this one retries: the hosts that it did not upgrade, and the steps that failed.
	RetryOf uint64 `json:"retry-of,omitempty"`
	// RollbackOf is the newest run that this one rolls back, RollbackSince the oldest, if there are
	// several. Its hosts count as upgraded once they are back at what they had before these runs.
	RollbackOf    uint64 `json:"rollback-of,omitempty"`
	RollbackSince uint64 `json:"rollback-since,omitempty"`
	// Until is the stage after which the run ends; absent if it goes on to the last one.
	Until string `json:"until,omitempty"`
	// GoesOnSince is the run that began with the first stage, if this run goes on where earlier ones
	// ended; absent if it begins itself with the first stage.
	GoesOnSince uint64 `json:"goes-on-since,omitempty"`
	// Follows are the runs of other environments that this one follows. OverrideAfter is why
	// somebody started it before these had completed and soaked; absent when they had.
	Follows       []FollowedRun `json:"follows,omitempty"`
	OverrideAfter string        `json:"override-after,omitempty"`
	// RequestID is that of the request that started the run; see Start.
	RequestID string    `json:"request-id,omitempty"`
	OpenedAt  time.Time `json:"opened-at"`
	// NotAfter is when the run stops sending commands. EndsBy is when the run ends at the
	// latest, whatever its hosts do; absent once it has ended.
	NotAfter time.Time  `json:"not-after"`
	EndsBy   *time.Time `json:"ends-by,omitempty"`
	EndedAt  *time.Time `json:"ended-at,omitempty"`
	// Paused is who paused the run, and why; absent while it is not paused.
	Paused string `json:"paused,omitempty"`
	// Aborted is who aborted the run, and why, while it waits for hosts to finish; absent
	// when nobody has.
	Aborted string `json:"aborted,omitempty"`
	// ExpectedEnd is when the run ends if the remaining hosts take as long as those before;
	// absent while that is unknown, or while the run waits for something unpredictable.
	ExpectedEnd *time.Time `json:"expected-end,omitempty"`
	// Forecast says in words if the rest does not fit before not-after, or why there is no
	// forecast.
	Forecast   string      `json:"forecast,omitempty"`
	WaitingFor *WaitingFor `json:"waiting-for,omitempty"`
	Stages     []RunStage  `json:"stages,omitempty"`
	// WayBack tells until which stage there is a way back; absent if the rollout has no point of no
	// return.
	WayBack *WayBack  `json:"way-back,omitempty"`
	Hosts   []RunHost `json:"hosts"`
	// Events tell what happened, oldest first; only in the answer for one run.
	Events []RunEvent `json:"events,omitempty"`
	// Pinned is what a rollback of the run needs; nil if a version before rollbacks has kept the run. It
	// stays at the site.
	Pinned *PinnedRun `json:"-"`
}

// PinnedRun is what a site keeps of a run to roll it back one day.
type PinnedRun struct {
	// Rollout is that with which the run was opened.
	Rollout rollout.Resolved `json:"rollout"`
	// Outputs are those of the steps that were done when it ended, by it or by the runs before it, sealed, in
	// the order of these.
	Outputs []StepOutputs `json:"outputs,omitempty"`
}

// StepOutputs are the outputs of the step of a stage as the site keeps them: with their names only.
type StepOutputs struct {
	Stage  string   `json:"stage"`
	Names  []string `json:"names"`
	Sealed string   `json:"sealed"`
}

// FollowedRun is a run of another environment that a run follows.
type FollowedRun struct {
	Environment string `json:"environment"`
	Run         uint64 `json:"run"`
}

// The phases of a stage that is not in the run but in an earlier or a later one.
const (
	StageDone  = "done"
	StageLater = "later"
)

// RunStage is one stage of a run, or of the runs that it goes on from or that go on from it.
type RunStage struct {
	Name string `json:"name"`
	// Phase is pending, waiting-for-approval, running, soaking, done, failed if its step failed, later
	// if the run ends before it and a later run goes on there or, when it ended before any of its hosts
	// or its step began, skipped.
	Phase string `json:"phase"`
	// DoneIn is the earlier run in which its step was done, or its last host so far upgraded; absent for a
	// stage of this run.
	DoneIn         uint64 `json:"done-in,omitempty"`
	Hosts          int    `json:"hosts"`
	MaxUnavailable int    `json:"max-unavailable"`
	// OutOfService counts the hosts that are out of service, because they are being
	// upgraded, silent or unhealthy.
	OutOfService int `json:"out-of-service"`
	Upgraded     int `json:"upgraded"`
	Failed       int `json:"failed"`
	// Step is how the step of the stage stands; absent for a stage with hosts.
	Step *RunStep `json:"step,omitempty"`
	// PointOfNoReturn tells that there is no way back once the stage has begun.
	PointOfNoReturn bool `json:"point-of-no-return,omitempty"`
}

// RunStep is a step of a run: something done once, in its place among the stages.
type RunStep struct {
	// Host is the host on which it is or was done last; absent at the site, and before it begins.
	Host string `json:"host,omitempty"`
	// Since is when it began; absent while it is not under way.
	Since *time.Time `json:"since,omitempty"`
	// Tries counts how often it has come to an end, well or not.
	Tries int `json:"tries,omitempty"`
	// Error is why it failed last; absent once it is done.
	Error string `json:"error,omitempty"`
	// Undo means that the run undoes the step.
	Undo bool `json:"undo,omitempty"`
	// Gives are the names of the outputs that it has given.
	Gives []string `json:"gives,omitempty"`
}

// WayBack tells how far a run can be rolled back.
type WayBack struct {
	// Until is the stage that is the point of no return.
	Until string `json:"until"`
	// Closed is when that stage has begun; absent while there is a way back.
	Closed *time.Time `json:"closed,omitempty"`
}

// RunEvent is something that happened in a run.
type RunEvent struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	Host  string    `json:"host,omitempty"`
	By    string    `json:"by,omitempty"`
	// Text says it in words.
	Text string `json:"text,omitempty"`
}

// Finished reports whether the run has ended.
func (r Run) Finished() bool { return r.Phase == "finished" }

// WaitingFor names what a run waits for now, and since when.
type WaitingFor struct {
	// What is window, after, slot, budget, check, hook, step, host, idle, approval, resume, soak, splay or log.
	What string `json:"what"`
	// Detail describes it in words, such as "h02 to answer upgrade".
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
	// Until is when the wait ends by itself, for example because the run gives a host up or
	// the time to approve a stage is over; absent when it does not.
	Until *time.Time `json:"until,omitempty"`
	// OverdueSince is since when this takes unusually long; see RunHost. Absent while it does
	// not.
	OverdueSince *time.Time `json:"overdue-since,omitempty"`
	// Sending is true while a host is about to be sent a command: that takes a moment, has no
	// Until and needs no person.
	Sending bool `json:"sending,omitempty"`
	// Budget is the disruption budget whose query has to allow it.
	Budget string `json:"budget,omitempty"`
	// Stage is the stage that soaks, wants to be approved or has the step. With what "resume" it is
	// the stage whose step failed and is done again once the run is resumed.
	Stage string `json:"stage,omitempty"`
	// Hosts are the first ten of the hosts that it waits for: hosts at work or, with
	// what "slot" or "budget" and with no Until, hosts about which a person has to do something.
	Hosts []string `json:"hosts,omitempty"`
}

// RunHost is one host of a run.
type RunHost struct {
	Hostname string `json:"hostname"`
	// Status is pending, preparing, prepared, draining, upgrading,
	// reboot-pending, rebooting, checking, upgraded, failed, skipped or
	// unreachable.
	Status string     `json:"status"`
	Since  *time.Time `json:"since,omitempty"`
	// GivesUpAt is when the run stops waiting for the host in its present status, or about
	// when the host itself ends what it does, whichever comes first; absent when the run does
	// not wait for it.
	GivesUpAt *time.Time `json:"gives-up-at,omitempty"`
	// OverdueSince is since when the host is overdue: its present status lasts unusually long, or
	// it fell silent. Somebody should look at it, although the run still waits. A status lasts
	// unusually long after three times as long as it took other hosts of the run, and no sooner
	// than after five minutes; if it was the status of no other host yet, after half of its limit.
	OverdueSince *time.Time `json:"overdue-since,omitempty"`
	// SilentSince is since when the host has not been heard of; absent while it is heard of.
	SilentSince *time.Time `json:"silent-since,omitempty"`
	// Error is the host's own message, or why it was skipped.
	Error string `json:"error,omitempty"`
	// Class is the kind of the failure, if the host reported it: transient, artifact,
	// space, lock, repository, install, boot or verify.
	Class string `json:"class,omitempty"`
	// RolledBack means that the upgrade failed and was rolled back: the host runs its
	// previous version.
	RolledBack bool `json:"rolled-back,omitempty"`
	// UpToDate means that the host counts as upgraded because it had nothing to change; absent
	// also if the host cannot tell.
	UpToDate bool `json:"up-to-date,omitempty"`
	// Stage is the name of the host's stage.
	Stage string `json:"stage,omitempty"`
	// Note has a remark about a host that did not fail, such as that its reboot was
	// skipped.
	Note string `json:"note,omitempty"`
	// Slot is since when the host is out of service, and SlotReason why;
	// absent while it is not.
	Slot       *time.Time `json:"slot,omitempty"`
	SlotReason string     `json:"slot-reason,omitempty"`
	// Unanswered is the command that the host had not answered when it was released, such as
	// upgrade: it may still carry it out, and runs leave it out until it answers.
	Unanswered string `json:"unanswered,omitempty"`
	// UnansweredOf is the run of the command in Unanswered; absent if it is not known.
	UnansweredOf uint64 `json:"unanswered-of,omitempty"`
	// ExpectedEnd is when the host is done if it takes as long as the hosts before it.
	ExpectedEnd *time.Time `json:"expected-end,omitempty"`
	// Seconds is how long the host was out of service for its upgrade, once it is done.
	Seconds int `json:"seconds,omitempty"`
	// Progress is what the host last reported about its work, for people.
	Progress string `json:"progress,omitempty"`
	// Failing is why the tries of the present action fail, once several have; the host keeps
	// trying. Absent otherwise.
	Failing string `json:"failing,omitempty"`
}

// Equal reports whether two views of a host say the same.
func (h RunHost) Equal(other RunHost) bool {
	same := sameTime(h.Since, other.Since) && sameTime(h.Slot, other.Slot) && sameTime(h.ExpectedEnd, other.ExpectedEnd) &&
		sameTime(h.GivesUpAt, other.GivesUpAt) && sameTime(h.OverdueSince, other.OverdueSince) && sameTime(h.SilentSince, other.SilentSince)
	for _, t := range []*RunHost{&h, &other} {
		t.Since, t.Slot, t.ExpectedEnd, t.GivesUpAt, t.OverdueSince, t.SilentSince = nil, nil, nil, nil, nil, nil
	}
	return same && h == other
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// ActionOutput is what an action of a host printed in a run, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/runs/{id}/hosts/{host}/output.
type ActionOutput struct {
	// Action is prepare, upgrade, resume, verify or rollback.
	Action string `json:"action"`
	// At is when it was last stored.
	At time.Time `json:"at"`
	// Cut means that only the end was kept.
	Cut    bool   `json:"cut,omitempty"`
	Output string `json:"output"`
}

// HostPlan is what a run changes on a host, as determined when the host prepared:
// /v1/state/tenants/{tenant}/os-upgrade/runs/{id}/hosts/{host}/plan. It is also what an
// upgrade outside of a run would change: .../os-upgrade/hosts/{host}/offer.
type HostPlan struct {
	// At is when it was stored.
	At time.Time `json:"at"`
	// Changes are sorted by package.
	Changes []VersionChange `json:"changes"`
	// Held lists packages that are not upgraded although there is a newer version.
	Held []HeldPackage `json:"held,omitempty"`
	// DownloadBytes is how much is fetched for it; absent when unknown.
	DownloadBytes int64 `json:"download-bytes,omitempty"`
	// Reboot says why a reboot is needed; absent if none is known to be needed.
	Reboot string `json:"reboot,omitempty"`
	// Release is the release to which an upgrade outside of a run would go: that of the host's
	// environment. It is absent if the host offers the newest that it finds, and for the plan of a run.
	Release *RunRelease `json:"release,omitempty"`
}

// OfferSummary is what a host would change if its upgrade began now, in numbers; whole it is
// the HostPlan of /v1/state/tenants/{tenant}/os-upgrade/hosts/{host}/offer.
type OfferSummary struct {
	// At is when the host reported it; absent when it has reported none.
	At *time.Time `json:"at,omitempty"`
	// Changes and Held count the packages.
	Changes int `json:"changes"`
	Held    int `json:"held,omitempty"`
	// DownloadBytes, Reboot and Release are those of the plan.
	DownloadBytes int64       `json:"download-bytes,omitempty"`
	Reboot        string      `json:"reboot,omitempty"`
	Release       *RunRelease `json:"release,omitempty"`
}

// HeldPackage is a package that is not upgraded though it could be, and why.
type HeldPackage struct {
	Package string `json:"package"`
	Version string `json:"version,omitempty"`
	Offered string `json:"offered,omitempty"`
	Reason  string `json:"reason"`
}

// The bounds of RunFilter.Limit.
const (
	DefaultRuns = 100
	MaxRuns     = 1000
)

// RunFilter chooses among the runs that are kept; the zero value chooses the
// newest DefaultRuns. Its members are the query parameters of GET .../runs.
type RunFilter struct {
	// Selector chooses the hosts, as they are now, of which a run has at least one. Its
	// Environments choose the runs of these environments, whatever hosts they had.
	Selector
	// Result is that of the runs; empty is any.
	Result string
	// Since and Until bound when a run was opened: from Since on and before
	// Until. Zero does not bound.
	Since, Until time.Time
	// Limit is how many there are at most, newest first; 0 is DefaultRuns.
	Limit int
}

// Results lists the results of a run.
func Results() []string { return []string{"completed", "partial", "failed", "aborted", "timed-out"} }

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (f RunFilter) Validate() Problems {
	var found Problems
	if f.Result != "" && !slices.Contains(Results(), f.Result) {
		found = append(found, document.NoneOf("result", f.Result, Results()...))
	}
	found = append(found, f.validateQuery()...)
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		found = append(found, document.Wrong("until", f.Until.Format(time.RFC3339Nano), "is not after since"))
	}
	if f.Limit < 0 || f.Limit > MaxRuns {
		found = append(found, document.OutOfRange("limit", f.Limit, 1, MaxRuns))
	}
	return found
}

// Most is the limit that counts.
func (f RunFilter) Most() int {
	if f.Limit == 0 {
		return DefaultRuns
	}
	return f.Limit
}

// HasAny reports whether a run has one of some hosts.
func (r Run) HasAny(hosts map[string]bool) bool {
	return slices.ContainsFunc(r.Hosts, func(h RunHost) bool { return hosts[h.Hostname] })
}

// Keeps reports whether the filter chooses a run, whatever its hosts and the limit.
func (f RunFilter) Keeps(r Run) bool {
	if len(f.Environments) > 0 && !slices.Contains(f.Environments, cmp.Or(r.Environment, DefaultEnvironment)) {
		return false
	}
	return (f.Result == "" || f.Result == r.Result) && !r.OpenedAt.Before(f.Since) && (f.Until.IsZero() || r.OpenedAt.Before(f.Until))
}

// RunRelease is the release that a run installs. The run is pinned to it: it stays the same whatever
// becomes of the release of that name.
type RunRelease struct {
	Name string `json:"name"`
	// Version is what the release calls itself.
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest"`
	// Differing are the packages of which hosts plan different versions, a line each, such as
	// "libssl3: 3.0.15 on 40 hosts, 3.0.16 on 2: c7, c9". The most important few are named.
	Differing []string `json:"differing,omitempty"`
	// Text is the release itself; only in the answer for one run.
	Text json.RawMessage `json:"text,omitempty"`
}

// ReleaseOf returns the release of a reference; nil for none.
func ReleaseOf(ref release.Ref) *RunRelease {
	if ref.IsZero() {
		return nil
	}
	return &RunRelease{Name: ref.Name, Digest: ref.Digest}
}

// DigestOf returns the digest; empty for no release.
func (r *RunRelease) DigestOf() string {
	if r == nil {
		return ""
	}
	return r.Digest
}

// WithoutText returns the release as lists show it.
func (r *RunRelease) WithoutText() *RunRelease {
	if r == nil {
		return nil
	}
	short := *r
	short.Text = nil
	return &short
}

// Pin returns the release as a run is pinned to it; nil if there is none.
func (r *RunRelease) Pin() *release.Pin {
	if r == nil {
		return nil
	}
	return &release.Pin{Name: r.Name, Digest: r.Digest, Text: r.Text}
}
