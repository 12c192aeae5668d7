package v1

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// MaxReason bounds a reason, in characters.
const MaxReason = 1000

// Start is the body of POST .../os-upgrade/start.
type Start struct {
	// Environment is the environment whose hosts are upgraded; default has the hosts that are in no
	// other. It may be absent for a retry, and if only one environment has hosts.
	Environment string `json:"environment,omitempty"`
	// OverrideWindow starts the run even if no maintenance window is open.
	OverrideWindow bool `json:"override-window,omitempty"`
	// Reason is kept with the run; required with OverrideWindow.
	Reason string `json:"reason,omitempty"`
	// Duration bounds a run that overrides the windows, even while a window is open; empty
	// means until the end of the open window, or 4h when none is open.
	Duration string `json:"duration,omitempty"`
	// OverrideAfter starts the run even if an environment that comes before this one has not
	// completed a run, or that run has not soaked. It is the reason, which is kept with the run.
	OverrideAfter string `json:"override-after,omitempty"`
	// RetryOf is the id of an ended run: the new run has only the hosts that it did not upgrade, and the steps
	// that failed while it went on without them. A rollback is not retried: start it again, and it goes on.
	RetryOf uint64 `json:"retry-of,omitempty" within:"1 9223372036854775807"`
	// RollbackOf is the id of an ended run that the new run rolls back, with the runs that belong to it:
	// each host goes back to what it had before, in the reverse order of stages. It waits for no window and
	// takes 4h at most, or Duration.
	RollbackOf uint64 `json:"rollback-of,omitempty" within:"1 9223372036854775807"`
	// Rollback is RollbackOf of the newest run of the environment that upgraded a host. A rollback does not
	// count, but the rollback of a rollback does.
	Rollback bool `json:"rollback,omitempty"`
	// Release is the name of the release that the run installs, in place of that of the environment;
	// empty means that of the environment, or of the run that is retried.
	Release string `json:"release,omitempty"`
	// Hosts, Labels and Roles choose the hosts of the run when it is started: those that are of
	// one of these names, have all these labels and one of these roles. The value of a label may
	// be several, joined by commas: one of them. Without any, the run has all hosts; an empty list or
	// object is refused.
	Hosts  []string          `json:"hosts,omitzero"`
	Labels map[string]string `json:"labels,omitzero"`
	Roles  []string          `json:"roles,omitzero"`
	// Until is the stage of the rollout after which the run ends. The next run of the environment goes on
	// there: hosts that are upgraded are left out, steps that are done stay done. Empty means the last
	// stage. Such a run has all hosts of its environment.
	Until string `json:"until,omitempty"`
	// RequestID names this request: a start with the request id of the newest run returns
	// that run, so a start whose answer was lost can be repeated. Empty means no id.
	RequestID string `json:"request-id,omitempty"`
}

// OfChosen reports whether somebody chooses the hosts of the run, as a retry does.
func (s Start) OfChosen() bool { return s.RetryOf != 0 || !s.Selector().IsZero() }

// IsRollback reports whether the run rolls back another one.
func (s Start) IsRollback() bool { return s.Rollback || s.RollbackOf != 0 }

// MaxRequestID is how long the id of a request may be.
const MaxRequestID = 100

// DecodeStart reads the body of a start request and validates it, as
// DecodeOSUpgrade does. An empty body is the zero Start.
func DecodeStart(contentType string, body []byte) (Start, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Start{}, nil
	}
	return decode(contentType, body, Start{}, Start.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when
// all is right.
func (s Start) Validate() Problems {
	found := append(validateEnvironment(s.Environment), s.Selector().Validate()...)
	found = append(found, s.validateChoice()...)
	found = append(found, s.validateRollback()...)
	switch {
	case s.OverrideWindow && strings.TrimSpace(s.Reason) == "":
		found = append(found, document.Wrong("reason", s.Reason, "is no reason; a start outside of the maintenance windows needs one"))
	case s.IsRollback() && strings.TrimSpace(s.Reason) == "":
		found = append(found, document.Wrong("reason", s.Reason, "is no reason; a rollback needs one"))
	default:
		found = append(found, validateReason(s.Reason)...)
	}
	found = append(found, under("override-after", validateReason(s.OverrideAfter))...)
	if s.OverrideAfter != "" && strings.TrimSpace(s.OverrideAfter) == "" {
		found = append(found, document.Wrong("override-after", s.OverrideAfter, "is no reason; say why the run does not wait"))
	}
	if s.Release != "" && !names.Valid(s.Release) {
		found = append(found, document.Wrong("release", s.Release, "is not the name of a release; "+names.Form))
	}
	switch {
	case s.Until == "":
	case !names.Valid(s.Until):
		found = append(found, document.Wrong("until", s.Until, "is not the name of a stage; "+names.Form))
	case s.OfChosen():
		found = append(found, document.Wrong("until", s.Until, "ends a run of all hosts of its environment; leave it out, or leave out hosts, labels, roles and retry-of"))
	}
	if s.RequestID != "" && (len(s.RequestID) > MaxRequestID || strings.Trim(s.RequestID, requestIDLetters) != "") {
		found = append(found, document.Wrong("request-id", s.RequestID, fmt.Sprintf("is not the id of a request; use at most %d of a-z, 0-9 and -", MaxRequestID)))
	}
	if s.Duration == "" {
		return found
	}
	if _, err := window.ParseLength(s.Duration); err != nil {
		found = append(found, Problem{Field: "duration", Value: document.Clip(s.Duration), Message: err.Error()})
	}
	if !s.OverrideWindow && !s.IsRollback() {
		found = append(found, document.Wrong("duration", s.Duration, "bounds a run outside of the maintenance windows; give it with override-window, or leave it out"))
	}
	return found
}

// validateChoice refuses an empty choice: a program that has found no host means none, and the run would
// have all.
func (s Start) validateChoice() (found Problems) {
	for _, choice := range []struct {
		field   string
		isEmpty bool
	}{{"hosts", s.Hosts != nil && len(s.Hosts) == 0}, {"labels", s.Labels != nil && len(s.Labels) == 0}, {"roles", s.Roles != nil && len(s.Roles) == 0}} {
		if choice.isEmpty {
			found = append(found, Problem{Field: choice.field, Message: "it is empty, which would choose all hosts; name some, or leave it out"})
		}
	}
	return found
}

// validateRollback returns what is given for a rollback that does not belong there.
func (s Start) validateRollback() (found Problems) {
	if !s.IsRollback() {
		return nil
	}
	wrong := func(field, value, why string) {
		if value != "" {
			found = append(found, document.Wrong(field, value, "does not go with a rollback: "+why+"; leave it out"))
		}
	}
	if s.Rollback && s.RollbackOf != 0 {
		wrong("rollback", "true", "rollback-of names the run")
	}
	if s.RetryOf != 0 {
		wrong("retry-of", strconv.FormatUint(s.RetryOf, 10), "a run retries another or rolls it back")
	}
	if s.OverrideWindow {
		wrong("override-window", "true", "a rollback waits for no window")
	}
	wrong("override-after", s.OverrideAfter, "a rollback waits for no other environment")
	wrong("release", s.Release, "each host goes back to what it had")
	wrong("until", s.Until, "a rollback goes through all stages that are rolled back")
	wrong("hosts", s.Selector().String(), "the hosts are those that the run has changed")
	return found
}

const requestIDLetters = "abcdefghijklmnopqrstuvwxyz0123456789-"

// Selector returns what the request chooses hosts by, besides their environment.
func (s Start) Selector() Selector {
	return Selector{Hosts: s.Hosts, Labels: s.Labels, Roles: s.Roles}
}

// Ask is the body of POST .../os-upgrade/{pause,resume,abort,approve,release}: a request
// about the current run.
type Ask struct {
	// Reason is kept with the run; required.
	Reason string `json:"reason"`
	// Environment is the environment of the run; default has the hosts that are in no other. It may
	// be absent if only one run is in progress, and for a release, which finds the run of the host.
	Environment string `json:"environment,omitempty"`
	// All aborts the runs of all environments; only for abort, and without an environment.
	All bool `json:"all,omitempty"`
	// Stage is the name of the stage to approve; only for approve, and required there.
	Stage string `json:"stage,omitempty"`
	// Host is the host whose slot is released; only for release, and required there.
	Host string `json:"host,omitempty"`
	// Now ends the run at once, without waiting for hosts that are being upgraded; only for
	// abort.
	Now bool `json:"now,omitempty"`
	// ResetFailures means that the hosts that have failed so far no longer count against
	// max-failures; only for resume.
	ResetFailures bool `json:"reset-failures,omitempty"`
}

// DecodeAsk reads the body of a request for what, which is pause, resume,
// abort, approve or release, and validates it as DecodeOSUpgrade does.
func DecodeAsk(what, contentType string, body []byte) (Ask, error) {
	return decode(contentType, body, Ask{}, func(a Ask) Problems { return a.Validate(what) })
}

// Validate returns everything that is wrong with the values of a request for
// what, and nothing when all is right.
func (a Ask) Validate(what string) Problems {
	var found Problems
	if strings.TrimSpace(a.Reason) == "" {
		found = append(found, document.Wrong("reason", a.Reason, "is empty; it is stored with the run"))
	} else {
		found = append(found, validateReason(a.Reason)...)
	}
	found = append(found, validateEnvironment(a.Environment)...)
	switch {
	case what != "abort" && a.All:
		found = append(found, document.Wrong("all", "true", "does not apply to this operation; name an environment, or omit both"))
	case a.All && a.Environment != "":
		found = append(found, document.Wrong("all", "true", "aborts the runs of all environments; omit environment"))
	}
	switch {
	case what != "approve" && a.Stage != "":
		found = append(found, document.Wrong("stage", a.Stage, "does not apply to this operation; omit it"))
	case what == "approve" && !names.Valid(a.Stage):
		found = append(found, document.Wrong("stage", a.Stage, "is not the name of a stage; name the one to approve"))
	}
	if what != "abort" && a.Now {
		found = append(found, document.Wrong("now", "true", "does not apply to this operation; omit it"))
	}
	if what != "resume" && a.ResetFailures {
		found = append(found, document.Wrong("reset-failures", "true", "does not apply to this operation; omit it"))
	}
	switch {
	case what != "release" && a.Host != "":
		found = append(found, document.Wrong("host", a.Host, "does not apply to this operation; omit it"))
	case what == "release" && !names.ValidHost(a.Host):
		found = append(found, document.Wrong("host", a.Host, "is not the name of a host; name the one whose slot is to be freed"))
	}
	return found
}

// under gives problems with one value the field of that value.
func under(field string, problems Problems) Problems {
	for i := range problems {
		problems[i].Field = field
	}
	return problems
}

// validateEnvironment checks that a text can be the name of an environment, if there is one.
func validateEnvironment(name string) Problems {
	if name == "" || names.Valid(name) {
		return nil
	}
	return Problems{document.Wrong("environment", name, "is not the name of an environment; "+names.Form)}
}

// validateReason checks that a reason can be kept and shown.
func validateReason(reason string) Problems {
	switch count := utf8.RuneCountInString(reason); {
	case count > MaxReason:
		return Problems{{Field: "reason", Value: document.Clip(reason), Message: fmt.Sprintf("%d characters are too many; use at most %d", count, MaxReason)}}
	case !names.Printable(reason):
		return Problems{document.Wrong("reason", reason, "has characters that cannot be shown; use letters, digits, signs and blanks on one line")}
	}
	return nil
}
