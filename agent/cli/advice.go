package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// advice is something for a person to do, and the command for it; empty when no
// command of ours does it.
type advice struct{ what, command string }

// command is a command of an operator, as it is typed.
func command(words ...string) string { return run.Command(strings.Join(words, " ")) }

// withReason is a command that wants to know why.
func withReason(words ...string) string { return run.Typed(strings.Join(words, " ")) }

// ofRun are the commands that are about the run of an environment.
var ofRun = []string{"start", "pause", "resume", "abort", "approve", "status"}

// inEnvironment is a command that names an environment if it is about its run; an empty one is not
// named.
func inEnvironment(environment, typed string) string {
	words := strings.Fields(typed)
	if environment == "" || len(words) < 2 || !slices.Contains(ofRun, words[1]) || slices.Contains(words, "--environment") {
		return typed
	}
	at := slices.Index(words, "--reason")
	if at < 0 {
		at = len(words)
	}
	return strings.Join(slices.Insert(words, at, "--environment", environment), " ")
}

// advise returns what a person has to do now; nothing when everything goes on by
// itself. Run is the newest run, nil when there is none.
func advise(s v1.Situation, r *v1.Run) []advice {
	todo := adviseAll(s, r)
	if r == nil {
		return todoIn(todo, s, v1.Run{Environment: s.Environment})
	}
	return todoIn(todo, s, *r)
}

// todoIn names the environment of a run in the commands of advice, if there are several.
func todoIn(todo []advice, s v1.Situation, r v1.Run) []advice {
	if s.Environments == 0 && r.Environment == "" {
		return todo
	}
	return allIn(environmentOf(r), todo)
}

// allIn names an environment in the commands of advice.
func allIn(environment string, todo []advice) []advice {
	for i := range todo {
		todo[i].command = inEnvironment(environment, todo[i].command)
	}
	return todo
}

func adviseAll(s v1.Situation, r *v1.Run) []advice {
	if r != nil && !r.Finished() {
		return adviseRun(*r)
	}
	var todo []advice
	switch {
	case s.Hosts == 0:
		todo = append(todo, advice{"no host belongs to this configuration: set config.worker-applications, and start a worker on each host", command("apply", "-f", "FILE")})
	case s.WaitingFor != nil && s.WaitingFor.What == waitsForLog:
		return adviseLog(s.WaitingFor.Detail)
	case s.WaitingFor != nil:
		todo = append(todo, advice{startsAfter(s) + s.WaitingFor.Detail, ""})
	case s.NextUpgradeAt == nil && s.OpenWindow == nil && s.Frozen == nil:
		todo = append(todo, advice{"declare a window, because none ever opens", command("apply", "-f", "FILE")})
	}
	if m := s.MissedSince(r); m != nil && s.Frozen == nil && s.OpenWindow == nil {
		todo = append(todo, advice{
			fmt.Sprintf("to make up for the missed window of %s before the next one", stamp(m.Start)), withReason("start", "--override-window"),
		})
	}
	if r != nil {
		todo = append(todo, adviseEnded(s, *r)...)
	}
	if s.Silent > 0 {
		todo = append(todo, adviseSilent(s)...)
	}
	return todo
}

// startsAfter begins the sentence about what holds up the start of a run.
func startsAfter(s v1.Situation) string {
	if s.OpenWindow == nil {
		return "no run starts: the site waits for "
	}
	return "the open window waits for "
}

// adviseRun returns what the run under way and its hosts need of a person.
func adviseRun(r v1.Run) []advice {
	todo := append(adviseCourse(r), adviseDelays(r, func(v1.RunHost) bool { return true })...)
	return append(todo, adviseUnanswered(r)...)
}

// adviseCourse returns what the run under way needs of a person to go on.
func adviseCourse(r v1.Run) []advice {
	switch {
	case r.Reason != "":
		return adviseLog(r.Reason)
	case r.Aborted != "" && stepInProgress(r) != "":
		return []advice{{"wait for step " + stepInProgress(r) + ", or end the run at once", withReason("abort", "--now")}}
	case r.Aborted != "":
		return []advice{{"wait for the hosts that are being upgraded, or end the run at once", withReason("abort", "--now")}}
	}
	todo := adviseWaiting(r)
	if len(todo) == 0 && r.Paused != "" { // What is in progress goes on, and then it waits.
		return adviseResume(r)
	}
	return todo
}

// adviseWaiting returns what a person has to do about what the run waits for.
func adviseWaiting(r v1.Run) []advice {
	w := r.WaitingFor
	switch {
	case w == nil:
		return nil
	case w.What == run.ForApproval:
		return []advice{
			{"let stage " + w.Stage + " begin", withReason("approve", w.Stage)},
			{"or end the run", withReason("abort")},
		}
	case w.What == run.ForResume:
		return adviseResume(r)
	case waitsForHosts(r):
		return adviseHosts(w.Hosts)
	case w.LacksHost():
		return []advice{
			{"bring up a host that step " + w.Stage + " matches", command("hosts")},
			{"or end the run", withReason("abort")},
		}
	case w.Budget != "": // Its query is asked again by itself.
		return []advice{{"wait until the query of the disruption budget allows it, or edit the budget", command("edit", "budgets")}}
	case w.What == run.ForBudget && w.Until == nil && !w.Sending:
		return []advice{{"edit the disruption budget: it lets no host leave service", command("edit", "budgets")}}
	case w.What == run.ForIdle && len(w.Hosts) > 0:
		return []advice{{"wait, or see on " + someOf(w.Hosts) + " what keeps it busy", command("busy", "--list")}}
	case w.What == run.ForCheck && w.Until == nil && len(w.Hosts) == 0 && strings.Contains(w.Detail, "failed"):
		return []advice{{"look at " + w.Detail, ""}, {"or end the run", withReason("abort")}}
	}
	return nil
}

// waitsForHosts reports whether the run waits for hosts about which a person has to do
// something.
func waitsForHosts(r v1.Run) bool {
	return r.WaitingFor != nil && r.WaitingFor.ForPerson()
}

// adviseDelays is about hosts whose action keeps failing or takes unusually long, or that fell
// silent during it; isOf selects them.
func adviseDelays(r v1.Run, isOf func(v1.RunHost) bool) []advice {
	var failing, overdue []v1.RunHost
	for _, h := range r.Hosts {
		switch {
		case !isOf(h) || waitsForHosts(r) && slices.Contains(r.WaitingFor.Hosts, h.Hostname):
		case isFailing(h):
			failing = append(failing, h)
		case h.OverdueSince != nil:
			overdue = append(overdue, h)
		}
	}
	return append(adviseFailing(r.ID, failing), adviseOverdue(r.ID, overdue)...)
}

// adviseUnanswered is about hosts that were released while at work and have not answered since:
// they may hang, and runs skip them until they answer.
func adviseUnanswered(r v1.Run) []advice {
	var todo []advice
	for _, h := range r.Hosts {
		if h.Unanswered == "" {
			continue
		}
		if len(todo) == maxAdvised {
			return append(todo, advice{"look also at the other hosts that may still be at work", command("status", "--all")})
		}
		of := cmp.Or(h.UnansweredOf, r.ID)
		what := fmt.Sprintf("look at %s, which may still be at work on the %s of run %d: runs skip it until it answers", h.Hostname, h.Unanswered, of)
		todo = append(todo, advice{what, command("runs", fmt.Sprint(of), "--host", h.Hostname, "--output")})
	}
	return todo
}

// isFailing reports whether a host that is heard of tells why its action fails.
func isFailing(h v1.RunHost) bool { return h.Failing != "" && h.SilentSince == nil }

// adviseFailing is about hosts that try their action again and again in vain: those with the same
// error in one line, because they probably have one cause, such as a mirror that is down.
func adviseFailing(id uint64, failing []v1.RunHost) []advice {
	var todo []advice
	causes, same := byCause(failing, func(h v1.RunHost) string { return h.Failing })
	for _, cause := range causes[:min(len(causes), maxAdvised)] {
		hosts := same[cause]
		how := text.Count(len(hosts), "host that fails and tries again", "hosts that fail and try again")
		todo = append(todo,
			advice{fmt.Sprintf("look at %s (%s): %s", how, someOf(hosts), text.Cut(cause, maxCause, "…")), command("runs", fmt.Sprint(id), "--host", hosts[0], "--output")},
			advice{"or stop waiting for " + hosts[0], withReason("release", hosts[0])})
	}
	if len(causes) > maxAdvised {
		todo = append(todo, advice{"look also at the hosts that fail for " + text.Count(len(causes)-maxAdvised, "other reason", "other reasons"), command("status", "--unhealthy")})
	}
	return todo
}

// byCause groups hosts by why they fail, in the order of the hosts.
func byCause(hosts []v1.RunHost, cause func(v1.RunHost) string) (causes []string, same map[string][]string) {
	same = map[string][]string{}
	for _, h := range hosts {
		why := cause(h)
		if same[why] == nil {
			causes = append(causes, why)
		}
		same[why] = append(same[why], h.Hostname)
	}
	return causes, same
}

// adviseOverdue is about hosts that take unusually long in their status, or that fell silent in it.
func adviseOverdue(id uint64, overdue []v1.RunHost) []advice {
	var todo []advice
	for _, h := range overdue[:min(len(overdue), maxAdvised)] {
		what := fmt.Sprintf("look at %s, %s since %s, which is unusually long", h.Hostname, h.Status, stamp(*h.Since))
		if h.SilentSince != nil {
			what = fmt.Sprintf("look at %s, %s and silent since %s", h.Hostname, h.Status, stamp(*h.SilentSince))
		}
		todo = append(todo, advice{what, command("runs", fmt.Sprint(id), "--host", h.Hostname, "--output")},
			advice{"or stop waiting for " + h.Hostname, withReason("release", h.Hostname)})
	}
	if len(overdue) > maxAdvised {
		var others []string
		for _, h := range overdue[maxAdvised:] {
			others = append(others, h.Hostname)
		}
		todo = append(todo, advice{"look also at these, which take unusually long: " + someOf(others), command("status", "--unhealthy")})
	}
	return todo
}

// stamp is a time in a text that advice.line shows in the reader's zone.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// waitsForLog is what a tenant waits for whose log cannot be written, or is not the
// one that it was.
const waitsForLog = "log"

// adviseLog is about a log that cannot be written, or is not the one that it was: only
// then its text names the command that goes on with it.
func adviseLog(trouble string) []advice {
	if !strings.Contains(trouble, "osupgrade-agent recover") {
		return []advice{{"repair the site, because " + trouble, ""}}
	}
	return []advice{
		{"stop the agent and restore the newest backup", command("restore", "--data", "DIR", "FILE")},
		{"or let it continue with this log", command("recover", "--data", "DIR")},
	}
}

func adviseResume(r v1.Run) []advice {
	if w := r.WaitingFor; w != nil && w.What == run.ForResume && w.Stage != "" {
		return []advice{
			{"repair what step " + w.Stage + " needs, then resume the run: it does the step again", withReason("resume")},
			{"or end it", withReason("abort")},
		}
	}
	by, why, _ := strings.Cut(strings.TrimPrefix(r.Paused, "by "), ": ")
	switch by {
	case message.ByRollout:
		if r.Environment != "" { // Its own may be paused, or that of the tenant.
			return []advice{
				{"set \"paused\" to false in the rollout of the environment", command("edit", "environment/"+r.Environment)},
				{"or in that of the tenant", command("edit", "rollout")},
			}
		}
		return []advice{{"set \"paused\" to false in the rollout", command("edit", "rollout")}}
	case message.ByAgent:
		if w := r.WaitingFor; w != nil && w.What == run.ForResume {
			why = w.Detail
		}
		return []advice{{"repair what cannot be read: " + why, ""}}
	case run.ByPolicy:
		return []advice{
			{"resume the run: the next failure pauses it again", withReason("resume")},
			{"or resume it and reset its failure count", withReason("resume", "--reset-failures")},
			{"or end it", withReason("abort")},
		}
	}
	return []advice{
		{"resume the run", withReason("resume")},
		{"or end it", withReason("abort")},
	}
}

// stepInProgress returns the stage whose step has no outcome yet; empty if there is none.
func stepInProgress(r v1.Run) string {
	for _, g := range r.Stages {
		if g.Step != nil && g.Step.Since != nil {
			return g.Name
		}
	}
	return ""
}

// failedStep returns the first stage whose step has failed; empty if none has.
func failedStep(r v1.Run) string {
	for _, g := range r.Stages {
		if g.Step != nil && g.Step.Error != "" && g.Phase == "failed" {
			return g.Name
		}
	}
	return ""
}

// maxAdvised bounds how many hosts get advice of their own.
const maxAdvised = 3

// adviseHosts is about hosts that hold slots until they are well, released or deleted.
func adviseHosts(hosts []string) []advice {
	todo := []advice{{fmt.Sprintf("look at %s: other hosts wait for a slot", someOf(hosts)), ""}}
	for _, host := range hosts[:min(len(hosts), maxAdvised)] {
		todo = append(todo,
			advice{"or stop waiting for " + host, withReason("release", host)},
			advice{"or delete " + host + " if it no longer exists", withReason("forget", host)})
	}
	return todo
}

// adviseEnded is about a run that has ended and left something to be looked at.
func adviseEnded(s v1.Situation, r v1.Run) []advice {
	var todo []advice
	var failed []v1.RunHost
	var back, held, left []string
	for _, h := range r.Hosts {
		switch h.Status {
		case string(run.Skipped):
			if h.Stage != "" && h.Unanswered == "" {
				left = append(left, h.Hostname)
			}
		case string(run.HostFailed):
			failed = append(failed, h)
		case string(run.Unreachable):
			if s.Silent <= len(s.SilentHosts) && !slices.Contains(s.SilentHosts, h.Hostname) {
				back = append(back, h.Hostname)
			}
		}
		if h.SlotReason != "" {
			held = append(held, h.Hostname)
		}
	}
	step := ""
	if r.Result == string(run.Failed) {
		step = failedStep(r)
	}
	if step != "" {
		todo = append(todo, advice{"repair what step " + step + " needs", command("runs", fmt.Sprint(r.ID))})
	}
	todo = append(todo, adviseFailed(r.ID, failed)...)
	if len(held) > 0 { // A run that has such a host waits for it.
		todo = append(todo, advice{
			fmt.Sprintf("look at %s that may be out of service (%s), and release each that is healthy", text.Count(len(held), "host", "hosts"), someOf(held)),
			withReason("release", held[0]),
		})
	}
	todo = append(todo, adviseUnanswered(r)...)
	if s.WaitingFor != nil && s.OpenWindow == nil && r.RollbackOf == 0 { // What hinders a window hinders a retry, too.
		return todo
	}
	verb, retry := "retry", []string{"retry", fmt.Sprint(r.ID)}
	again := command(retry...)
	switch {
	case r.RollbackOf != 0:
		verb, again = "roll back", withReason("rollback", fmt.Sprint(r.RollbackOf))
	case s.OpenWindow == nil:
		again = withReason(append(retry, "--override-window")...)
	}
	alone := s.NextUpgradeAt == nil && s.OpenWindow == nil || r.RollbackOf != 0 // No run takes them by itself.
	switch {
	case len(failed) > 0 && r.RollbackOf != 0:
		todo = append(todo, advice{"then go on with the rollback", again})
	case len(failed) > 0:
		todo = append(todo, advice{"then retry before the next window", again})
	case len(back) > 0:
		todo = append(todo, advice{fmt.Sprintf("%s %s (%s)", verb, text.Count(len(back), "host that was unreachable and is back", "hosts that were unreachable and are back"), someOf(back)), again})
	case len(left) > 0 && alone:
		todo = append(todo, advice{fmt.Sprintf("%s %s (%s)", verb, text.Count(len(left), "host that was left out", "hosts that were left out"), someOf(left)), again})
	}
	return todo
}

// maxCause bounds the text of a failure that several hosts have in common.
const maxCause = 300

// adviseFailed is about hosts that failed: those with the same error in one line, because they
// probably have one cause, such as a mirror that is down.
func adviseFailed(id uint64, failed []v1.RunHost) []advice {
	var todo []advice
	var others []string
	errors, same := byCause(failed, func(h v1.RunHost) string { return h.Error })
	look := func(hosts []string, cause string) {
		what := fmt.Sprintf("look at %s (%s)%s", text.Count(len(hosts), "failed host", "failed hosts"), someOf(hosts), cause)
		todo = append(todo, advice{what, command("runs", fmt.Sprint(id))})
	}
	for _, cause := range errors {
		if hosts := same[cause]; len(hosts) > 1 && cause != "" {
			look(hosts, ": "+text.Cut(cause, maxCause, "…"))
		} else {
			others = append(others, hosts...)
		}
	}
	if len(others) > 0 {
		look(others, "")
	}
	return todo
}

func adviseSilent(s v1.Situation) []advice {
	todo := []advice{{fmt.Sprintf("look at %s (%s)", text.Count(s.Silent, "silent host", "silent hosts"), text.ListOf(s.SilentHosts, s.Silent, mostNames)), command("hosts")}}
	return append(todo, advice{"delete a host that no longer exists", withReason("forget", s.SilentHosts[0])})
}

// mostNames is how many names a line lists.
const mostNames = 10

// someOf lists the first few of names.
func someOf(names []string) string { return text.List(names, mostNames) }

// maxWidth bounds the text beside which commands stand in a column: one long text would push
// the commands of all others away.
const maxWidth = 100

// printAdvice prints what to do now, or that there is nothing.
func printAdvice(to *terminal, at timeFormat, todo []advice) {
	if len(todo) == 0 {
		to.line("Nothing to do now.")
		return
	}
	to.line(to.paint(bold, "To do now:"))
	width := 0
	for _, a := range todo {
		if n := utf8.RuneCountInString(a.text(at)); a.command != "" && n <= maxWidth {
			width = max(width, n)
		}
	}
	for _, a := range todo {
		to.line("  " + a.line(at, width))
	}
}

// line is the advice in a line, the command beside a column of some width.
func (a advice) line(at timeFormat, width int) string {
	what := a.text(at)
	if a.command == "" {
		return what
	}
	return what + ": " + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(what))) + a.command
}

// beyondOperator has the advised commands that the role operator does not permit, and what
// permits them.
var beyondOperator = map[string]string{
	"apply": `the right "write"`, "edit": `the right "write"`, "forget": `the right "write"`, "move": `the right "write"`, "approve": `the role "approver"`, "approve-host": `the role "admin"`,
}

// text is what to do, and what that needs if an operator lacks it.
func (a advice) text(at timeFormat) string {
	what := at.text(a.what)
	if words := strings.Fields(a.command); len(words) > 1 && beyondOperator[words[1]] != "" {
		what += " (needs " + beyondOperator[words[1]] + ")"
	}
	return what
}
