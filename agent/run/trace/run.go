package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The names of spans. What a span is about in particular is in its attributes, so that
// the names are few.
const (
	runSpan       = "run"
	preparingSpan = "prepare hosts"
	stageSpan     = "stage"
	hostSpan      = "host"
)

// The keys of attributes.
const (
	TenantKey = "osupgrade.tenant"
	RunKey    = "osupgrade.run"
	// EnvironmentKey is absent for the default environment.
	EnvironmentKey = "osupgrade.environment"
	TriggerKey     = "osupgrade.trigger"
	ResultKey      = "osupgrade.result"
	ClassKey       = "osupgrade.class"
	StageKey       = "osupgrade.stage"
	HostKey        = "osupgrade.host"
	CommandKey     = "osupgrade.command"
	TaskKey        = "osupgrade.task"
	AttemptKey     = "osupgrade.attempt"
	SequenceKey    = "osupgrade.log.sequence"
	ReplyKey       = "osupgrade.log.reply_sequence"
	HostsKey       = "osupgrade.hosts"
	UpgradedKey    = "osupgrade.hosts.upgraded"
	FailedKey      = "osupgrade.hosts.failed"
	RequestIDKey   = "osupgrade.request_id"
)

const (
	// maxEvents bounds the events of a run that are told.
	maxEvents = 64
	// maxTasks bounds the tasks of a host that are told: a hook that fails is tried again
	// and again.
	maxTasks = 50
)

// Run follows the newest run of a tenant.
//
//	run                               opened … finished
//	├── prepare hosts                 prepare … all have answered or are not waited for
//	│   └── prepare                   prepare … reply            of each host
//	└── stage                         its first host begins … its last host is done
//	    ├── step                      begun … its outcome            in place of hosts
//	    └── host                      admitted … upgraded, failed or skipped
//	        ├── before-host, drain, after-host, undrain          of each task
//	        └── upgrade, reboot       command … reply
type Run struct {
	tenant  string
	samples func(Context, ID) bool

	// key begins what its ids are hashes of, now is the latest time of its records: a clock
	// that was set back does not turn a span around.
	key     string
	now     time.Time
	sampled bool
	// id is what people call the run by; 0 before its prepare.
	id uint64
	// environment is that of the run; empty for the default one.
	environment string

	root, preparing *open
	// doing is the step under way.
	doing  *open
	stages map[string]*open
	hosts  map[string]*host
}

// open is a span that has not ended.
type open struct {
	Span
	parent *open
	// parts are those of its parts that have not ended, begun counts all that began.
	parts map[*open]int
	begun int
}

// host is what is known of a member: the span of its upgrade and that of what
// it does, nil when there is none.
type host struct {
	span, work *open
	// doing identifies what it does.
	doing doing
	ended bool
	tasks int
}

// doing is what a host does: it carries out a command, or runs a task.
type doing struct {
	action  message.Action
	task    message.TaskKind
	attempt int
}

// NewRun makes a Run that has seen no record. samples says which traces are recorded.
func NewRun(tenant string, samples func(Context, ID) bool) *Run {
	return &Run{tenant: tenant, samples: samples}
}

// Record returns the spans that have ended by a record that was just folded into a run.
// The root of a run is the last of its spans.
func (t *Run) Record(r *run.State, record message.Decoded) []Span {
	if e, ok := record.Event.(message.Opened); ok && record.Seq == r.OpenedSeq {
		t.begin(record, e)
	}
	if t.root == nil || !t.sampled {
		return nil
	}
	if record.Time.After(t.now) {
		t.now = record.Time
	}
	var ended []Span
	if record.Command != nil && record.Command.Action == message.Prepare {
		t.id = r.Key()
		t.preparing = t.start(t.root, preparingSpan, "prepare", Number(SequenceKey, int64(record.Seq)))
	}
	for _, name := range t.affected(r, record) {
		if member, ok := r.Host(name); ok {
			ended = append(ended, t.host(r, member, record)...)
		}
	}
	t.event(record)
	ended = append(ended, t.step(r, record)...)
	if t.preparing != nil && r.Prepared() {
		ended = append(ended, t.endAll(t.preparing, notAnswered)...)
		t.preparing = nil
	}
	ended = append(ended, t.endStages(r)...)
	if r.Over() {
		ended = append(ended, t.finish(r)...)
	}
	return ended
}

// begin begins the trace of a run. Its parent is the request that opened it, as long as
// the run may take: what follows from the request is one trace, and who asked decides
// whether it is recorded. A run that nobody asked for begins a trace of its own.
func (t *Run) begin(record message.Decoded, e message.Opened) {
	*t = Run{
		tenant: t.tenant, samples: t.samples, now: record.Time,
		// The time tells a run from another one at the same sequence of a log that was made anew.
		key:    fmt.Sprintf("%s\n%d\n%d\n", t.tenant, record.Seq, record.Time.UnixNano()),
		stages: map[string]*open{}, hosts: map[string]*host{}, environment: e.Environment,
	}
	parent := Parse(e.Traceparent)
	var id ID
	if id = parent.Trace; !parent.Valid() {
		hash(id[:], t.key+"trace")
	}
	t.sampled = t.samples(parent, id)
	t.root = &open{Span: Span{
		Context: Context{Trace: id, Span: t.spanID(runSpan), Sampled: t.sampled}, Parent: parent.Span, Remote: parent.Valid(), Name: runSpan, Start: record.Time,
		Attributes: t.owner(Text(TriggerKey, e.Trigger), Number(HostsKey, int64(len(e.Members)))),
	}}
}

// affected are the hosts that a record may have changed. The end of a run ends what all
// of them do.
func (t *Run) affected(r *run.State, record message.Decoded) []string {
	switch {
	case r.Over():
		return slices.Sorted(maps.Keys(t.hosts))
	case record.Command != nil && record.Command.Action == message.Prepare:
		return record.Command.Hosts
	}
	return record.Hosts()
}

// host follows a member: what it did has ended, or what it does has begun, by a record.
func (t *Run) host(r *run.State, member run.Host, record message.Decoded) (ended []Span) {
	h := t.hosts[member.Name]
	if h == nil {
		h = &host{}
		t.hosts[member.Name] = h
	}
	if h.ended {
		return nil
	}
	if h.work != nil && h.work.ended() {
		h.work = nil // It ended with what it was part of.
	}
	does := doingOf(r, member)
	if h.work != nil && does != h.doing {
		result, class := outcome(record)
		ended = append(ended, t.endWork(h, result, class, record)...)
	}
	if h.work == nil && does != (doing{}) {
		t.startWork(h, member, does, record)
	}
	if member.Done {
		h.ended = true
		if h.span != nil {
			h.span.Attributes = append(h.span.Attributes, Text(ResultKey, string(member.Status)))
			h.span.fails(member.Status == run.HostFailed, string(member.Class))
			ended = append(ended, t.endAll(h.span, string(member.Status))...)
		}
	}
	return ended
}

// doingOf returns what a member does.
func doingOf(r *run.State, member run.Host) doing {
	switch member.Status {
	case run.HostPreparing:
		return doing{action: message.Prepare}
	case run.HostUpgrading:
		return doing{action: message.Upgrade}
	case run.Rebooting:
		return doing{action: message.Reboot}
	}
	if member.Done {
		return doing{}
	}
	if task, _, wanted := r.Task(member.Name); wanted {
		return doing{task: task.Kind, attempt: task.Attempt}
	}
	return doing{}
}

// startWork begins the span of what a host does, and before that the spans that it is
// part of.
func (t *Run) startWork(h *host, member run.Host, does doing, record message.Decoded) {
	h.doing = does
	about := fmt.Sprintf("work\n%s\n%d", member.Name, record.Seq)
	if does.action == message.Prepare {
		if t.preparing != nil {
			h.work = t.start(t.preparing, string(does.action), about, Text(HostKey, member.Name), Text(CommandKey, string(does.action)), Number(SequenceKey, int64(record.Seq)))
			h.work.Kind = Client
		}
		return
	}
	if does.task != "" {
		if h.tasks++; h.tasks > maxTasks {
			return
		}
	}
	stage := t.stages[member.Stage]
	if stage == nil {
		stage = t.start(t.root, stageSpan, "stage\n"+member.Stage, Text(StageKey, member.Stage))
		t.stages[member.Stage] = stage
	}
	if h.span == nil {
		h.span = t.start(stage, hostSpan, "host\n"+member.Name, Text(HostKey, member.Name), Text(StageKey, member.Stage))
	}
	if does.task != "" {
		h.work = t.start(h.span, string(does.task), about, Text(HostKey, member.Name), Text(TaskKey, string(does.task)), Number(AttemptKey, int64(does.attempt)))
		return
	}
	h.work = t.start(h.span, string(does.action), about, Text(HostKey, member.Name), Text(CommandKey, string(does.action)), Number(SequenceKey, int64(record.Seq)))
	h.work.Kind = Client
}

// endWork ends the span of what a host did.
func (t *Run) endWork(h *host, result string, class message.Class, record message.Decoded) []Span {
	work := h.work
	h.work = nil
	work.Attributes = append(work.Attributes, Text(ResultKey, result))
	if record.Kind == message.ReplyRecord {
		work.Attributes = append(work.Attributes, Number(ReplyKey, int64(record.Seq)))
	}
	if class != "" {
		work.Attributes = append(work.Attributes, Text(ClassKey, string(class)))
	}
	work.fails(!slices.Contains(good, result), string(class))
	return t.endAll(work, result)
}

// The results of what hosts do. A host's own words are free text, and in no span.
const (
	failed     = "failed"
	unknown    = "unknown"
	passed     = "passed"
	endedOther = "ended"
	// runEnded is the result of what the end of the run has ended, notAnswered that of a prepare that nobody waits for any longer.
	runEnded    = "run-ended"
	notAnswered = "not-answered"
)

var good = []string{string(message.Done), string(message.RebootRequired), passed, endedOther}

// outcome returns how a record ends what a host did.
func outcome(record message.Decoded) (result string, class message.Class) {
	switch {
	case record.Reply != nil:
		return outcomeOf(record.Reply.Result)
	case record.Kind == message.ReplyRecord:
		return unknown, record.Class
	}
	switch e := record.Event.(type) {
	case message.Ran:
		if e.Outcome.OK {
			return passed, ""
		}
		return failed, ""
	case message.Finished:
		return runEnded, ""
	case nil:
		return endedOther, ""
	default:
		return message.Name(e), ""
	}
}

// outcomeOf is outcome for a reply. An upgrade that was rolled back has failed.
func outcomeOf(r message.Result) (result string, class message.Class) {
	switch r.Outcome {
	case message.Done, message.RebootRequired:
		return string(r.Outcome), ""
	case message.Unknown:
		return unknown, r.Class
	default:
		return failed, r.Class
	}
}

// event notes on the run what people do with it.
func (t *Run) event(record message.Decoded) {
	var about []Attribute
	switch e := record.Event.(type) {
	case message.Paused, message.Resumed, message.Aborted, message.Frozen:
	case message.Approved:
		about = []Attribute{Text(StageKey, e.Stage)}
	case message.Released:
		about = []Attribute{Text(HostKey, e.Host)}
	default:
		return
	}
	if len(t.root.Events) < maxEvents {
		t.root.Events = append(t.root.Events, Event{Name: message.Name(record.Event), At: t.now, Attributes: about})
	}
}

// step begins the span of a step when it begins, and ends it with its outcome.
func (t *Run) step(r *run.State, record message.Decoded) []Span {
	switch e := record.Event.(type) {
	case message.Begun:
		stage := t.stages[e.Stage]
		if stage == nil {
			stage = t.start(t.root, stageSpan, "stage\n"+e.Stage, Text(StageKey, e.Stage))
			t.stages[e.Stage] = stage
		}
		kind := r.KindOf(e.Stage)
		about := []Attribute{Text(StageKey, e.Stage), Text(TaskKey, string(kind))}
		if e.Host != "" {
			about = append(about, Text(HostKey, e.Host))
		}
		t.doing = t.start(stage, string(kind), fmt.Sprintf("step\n%s\n%d", e.Stage, record.Seq), about...)
	case message.Ran:
		if e.Outcome.Kind.OfStage() && t.doing != nil {
			work := t.doing
			t.doing = nil
			result, _ := outcome(record)
			work.Attributes = append(work.Attributes, Number(AttemptKey, int64(e.Outcome.Attempt)), Text(ResultKey, result))
			work.fails(result == failed, "")
			return t.endAll(work, result)
		}
	}
	return nil
}

// endStages ends the stages of which all hosts are done, and all stages when the run has
// ended.
func (t *Run) endStages(r *run.State) (ended []Span) {
	if len(t.stages) == 0 {
		return nil
	}
	for _, g := range r.Stages(t.now) {
		stage := t.stages[g.Name]
		if stage == nil || stage.ended() || !g.Done() && !r.Over() {
			continue
		}
		stage.Attributes = append(stage.Attributes, Number(HostsKey, int64(g.Size)), Number(UpgradedKey, int64(g.Upgraded)), Number(FailedKey, int64(g.Failed)))
		ended = append(ended, t.endAll(stage, endedOther)...)
	}
	return ended
}

// finish ends the run with all that is left of it.
func (t *Run) finish(r *run.State) []Span {
	t.root.Attributes = append(t.root.Attributes, Number(RunKey, int64(r.Key())), Text(ResultKey, string(r.Result)), Number(UpgradedKey, int64(r.Count(run.Upgraded))), Number(FailedKey, int64(r.Count(run.HostFailed))))
	t.root.fails(r.Result == run.Failed || r.Result == run.TimedOut, string(r.Result))
	root := t.root
	t.root = nil
	return t.endAll(root, string(r.Result))
}

// owner are the attributes of whose run it is, and then others.
func (t *Run) owner(others ...Attribute) []Attribute {
	all := []Attribute{Text(TenantKey, t.tenant)}
	if t.environment != "" {
		all = append(all, Text(EnvironmentKey, t.environment))
	}
	return append(all, others...)
}

// start begins a span that is part of another one.
func (t *Run) start(parent *open, name, about string, attributes ...Attribute) *open {
	s := &open{parent: parent, Span: Span{
		Context: Context{Trace: t.root.Trace, Span: t.spanID(about), Sampled: true}, Parent: parent.Context.Span, Name: name, Start: t.now,
		Attributes: append(t.owner(Number(RunKey, int64(t.id))), attributes...),
	}}
	if parent.parts == nil {
		parent.parts = map[*open]int{}
	}
	parent.parts[s] = parent.begun
	parent.begun++
	return s
}

// endAll ends a span, and before it all that it consists of; what has no result of its own
// has the one given.
func (t *Run) endAll(s *open, result string) (ended []Span) {
	for _, part := range slices.SortedFunc(maps.Keys(s.parts), func(a, b *open) int { return s.parts[a] - s.parts[b] }) {
		ended = append(ended, t.endAll(part, result)...)
	}
	if !slices.ContainsFunc(s.Attributes, func(a Attribute) bool { return a.Key == ResultKey || a.Key == HostsKey }) && s.Name != preparingSpan {
		s.Attributes = append(s.Attributes, Text(ResultKey, result))
	}
	s.End = t.now
	if s.parent != nil {
		delete(s.parent.parts, s)
	}
	return append(ended, s.Span)
}

func (s *open) ended() bool { return !s.End.IsZero() }

func (s *open) fails(failed bool, why string) {
	if failed {
		s.Failed, s.Status = true, strings.TrimSpace(why)
	}
}

func (t *Run) spanID(about string) (id SpanID) {
	hash(id[:], t.key+about)
	return id
}
