package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// streamTimes are the times of event streams.
type streamTimes struct {
	// heartbeat is the interval of comments on a stream.
	heartbeat time.Duration
	// write is how long a client that does not read may block a write. Its stream then
	// ends. No queue is kept for it: a change that comes meanwhile is a signal, and what
	// is sent after that is what is true then.
	write time.Duration
}

// usualTimes are the times that clients are told of.
var usualTimes = streamTimes{heartbeat: 3 * time.Second, write: 10 * time.Second}

const (
	// gather is how long the stream waits for more after a change: a record of a run is
	// several records, and who watches wants to see what came of it.
	gather = 20 * time.Millisecond
	// smooth is the shortest time between two events: a run with many hosts sends
	// ten events a second, not thousands.
	smooth = 100 * time.Millisecond
	// share limits the cost of a client: at most one part in share of the time is
	// spent on events, however many hosts the run has.
	share = 10
	// longestPause is the longest time between two events. Without it the events
	// of a slow client would be far apart.
	longestPause = 2 * time.Second
)

// eventStream is the media type of the stream.
const eventStream = "text/event-stream"

// The events of the stream.
const (
	eventSituation = "situation"
	eventRun       = "run"
	eventChanges   = "changes"
	eventVersions  = "versions"
	eventReset     = "reset"
	eventNews      = "news"
)

// stream is the event stream to a client.
type stream struct {
	*call
	out   *http.ResponseController
	times streamTimes
	// since is the Last-Event-ID of the request; begun tells that it was looked at.
	since string
	begun bool
	// news is the number of the news up to which they were sent.
	news uint64
	// changes tells that the client keeps the hosts of the run and wants only those
	// that have changed.
	changes bool
	// environment is the only one that the client follows; empty is all.
	environment string
	// situation is what was sent last. What is unchanged is not sent again.
	situation []byte
	// runs are what was sent of the newest run of each environment, newest is the highest id of a
	// run when the stream began.
	runs   map[string]*sentRun
	newest uint64
	// allowed returns why the token of the request is not good any more; nil when it is.
	allowed func() error
	// reports is the position among the reports of versions up to which they were sent.
	reports uint64
}

// sentRun is what was sent of the newest run of an environment.
type sentRun struct {
	// id is the run, text what was sent last of it, without hosts for a client that keeps these.
	id   uint64
	text []byte
	// hosts are what was sent of each of them. spare has room for what is sent next.
	hosts, spare []v1.RunHost
}

// getEvents sends, as server-sent events with a position of the log as id, the situation
// of the tenant ("situation") and its newest run ("run"): now and after each change,
// including those that only time makes. If there are several environments, it sends the newest run
// and those that are under way or begin later; environment=NAME restricts both to that one. With
// hosts=changed a run is sent once with all its hosts, and then ("changes") with those that have
// changed: ten thousand hosts are megabytes. Each report of versions from now on is an event, too ("versions"). A client
// that comes back is sent the news that it has missed ("news"), one with the id of another
// log is told so first ("reset").
func (s *server) getEvents(c *call) error {
	if name := c.query.Get("environment"); c.has("environment") {
		if !names.Valid(name) {
			return badRequest("environment", name, "is not the name of an environment; "+names.Form)
		}
		if _, err := c.controller.SnapshotOf(c.Context(), name); err != nil {
			return err
		}
	}
	changed, stop, err := c.controller.Watch(c.Context())
	if err != nil {
		return err
	}
	defer stop()
	if s.Metrics != nil {
		defer s.Metrics.Streaming()()
	}
	c.w.Header().Set("Content-Type", eventStream)
	tokens, leave := s.Tokens.Watch()
	defer leave()
	out := &stream{
		call: c, out: http.NewResponseController(c.w), times: s.times, since: c.Header.Get(lastEventID), changes: c.has("hosts"), allowed: s.stillAllowed(c),
		environment: c.query.Get("environment"),
	}
	out.follow(changed, tokens)
	return nil
}

// stillAllowed returns a function that admits a request again, by its token as it is now.
func (s *server) stillAllowed(c *call) func() error {
	return func() error {
		again := call{Request: c.Request, w: c.w, route: c.route}
		err := s.admit(&again)
		if err == nil && again.tenant != c.tenant {
			err = fmt.Errorf("the token is now one of tenant %s", again.tenant)
		}
		return err
	}
}

// follow returns when the client is gone or too slow, or its token is not good any more:
// a token may be withdrawn or changed, or expire. The client reconnects.
func (st *stream) follow(changed, tokens <-chan struct{}) {
	quiet := time.NewTicker(st.times.heartbeat)
	defer quiet.Stop()
	if st.write([]byte(": hello\n\n")) != nil || st.send() != nil {
		return
	}
	for {
		var err error
		select {
		case <-st.Context().Done():
			return
		case <-quiet.C:
			if err = st.allowed(); err == nil {
				err = st.write([]byte(": alive\n\n"))
			}
		case <-tokens:
			err = st.allowed()
		case <-changed:
			_ = wait.Sleep(st.Context(), gather)
			begun := time.Now()
			err = st.send()
			_ = wait.Sleep(st.Context(), min(max(smooth, (share-1)*time.Since(begun)), longestPause))
		}
		if err != nil {
			return
		}
	}
}

// send sends what has changed since the last events.
func (st *stream) send() error {
	if err := st.sendSnapshot(); err != nil {
		return err
	}
	return st.sendReports()
}

// sendReports sends the reports of versions since the last events.
func (st *stream) sendReports() error {
	events, position, err := st.controller.ReportsSince(st.Context(), st.reports)
	if err != nil {
		return err
	}
	st.reports = position
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		// It has no id: that is a position in the log, and a report is none of its records.
		if err := st.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", eventVersions, data)); err != nil {
			return err
		}
	}
	return nil
}

// sendSnapshot sends the situation and the run, if they have changed.
func (st *stream) sendSnapshot() error {
	shown, err := st.snapshot()
	if err != nil {
		return err
	}
	at := position{log: shown.Log, seq: shown.Seq}
	if err := st.sendNews(&at); err != nil {
		return err
	}
	ended, underWay := st.followed(shown)
	if st.situation == nil { // What comes next is told after the end of a run.
		ended, underWay = nil, append(underWay, ended...)
		slices.SortFunc(underWay, func(a, b *v1.Run) int { return cmp.Compare(b.ID, a.ID) })
	}
	if err := st.sendRuns(at, ended); err != nil {
		return err
	}
	if err := st.event(eventSituation, at, shown.Situation, &st.situation); err != nil {
		return err
	}
	return st.sendRuns(at, underWay)
}

// snapshot is what is shown now to the client.
func (st *stream) snapshot() (v1.Snapshot, error) {
	if st.environment != "" {
		return st.controller.SnapshotOf(st.Context(), st.environment)
	}
	return st.controller.Snapshot(st.Context())
}

// followed returns the runs that the client is told of: those under way, those that have ended since
// the stream began, and the newest of all.
func (st *stream) followed(shown v1.Snapshot) (ended, underWay []*v1.Run) {
	all := shown.Others
	if shown.Run != nil {
		all = append([]*v1.Run{shown.Run}, all...)
	}
	if st.runs == nil {
		st.runs = map[string]*sentRun{}
		for _, r := range all {
			st.newest = max(st.newest, r.ID)
		}
	}
	for _, r := range all {
		sent := st.runs[r.Environment]
		switch {
		case !r.Finished():
			underWay = append(underWay, r)
		case r.ID >= st.newest || sent != nil && sent.id == r.ID:
			ended = append(ended, r)
		}
	}
	return ended, underWay
}

// sendRuns sends what has changed of runs.
func (st *stream) sendRuns(at position, runs []*v1.Run) error {
	for _, r := range runs {
		if err := st.sendRun(at, r); err != nil {
			return err
		}
	}
	return nil
}

// sendNews sends the news since the last events, and sets how far that is. To a client that
// has come back these are the news that it has missed.
func (st *stream) sendNews(at *position) error {
	all, oldest, newest, err := st.controller.News(st.Context(), st.news)
	if err != nil {
		return err
	}
	at.news = newest
	if !st.begun {
		st.begun = true
		if all, err = st.resume(*at, oldest); err != nil {
			return err
		}
	}
	for _, n := range all {
		st.news = n.Number
		if err := st.tell(eventNews, position{log: at.log, seq: at.seq, news: n.Number}, n); err != nil {
			return err
		}
	}
	st.news = newest
	return nil
}

// resume returns the news that a client has missed. One that was told of another past
// than what it is told from now on is told so.
func (st *stream) resume(now position, oldest uint64) ([]v1.News, error) {
	if st.since == "" {
		return nil, nil
	}
	why := now.follows(st.since, oldest)
	if why != "" {
		data, err := json.Marshal(v1.StreamReset{Reason: why})
		if err != nil {
			return nil, err
		}
		return nil, st.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", eventReset, data))
	}
	seen, _ := parsePosition(st.since)
	missed, _, _, err := st.controller.News(st.Context(), seen.news)
	return missed, err
}

// sendRun sends what has changed of the newest run of an environment.
func (st *stream) sendRun(at position, r *v1.Run) error {
	sent := st.runs[r.Environment]
	if sent == nil {
		sent = &sentRun{}
		st.runs[r.Environment] = sent
	}
	if st.changes {
		return st.sendChanges(at, *r, sent)
	}
	sent.id = r.ID
	return st.event(eventRun, at, r, &sent.text)
}

// sendChanges sends a run with the hosts that have changed, or with all of them when
// the client has none of this run. When each is expected to end changes with every
// other host that ends, so that is left out.
func (st *stream) sendChanges(at position, r v1.Run, sent *sentRun) error {
	hosts := append(sent.spare[:0], r.Hosts...)
	for i := range hosts {
		hosts[i].ExpectedEnd = nil
	}
	kept, whole := sent.hosts, sent.id != r.ID || len(sent.hosts) != len(hosts)
	sent.id, sent.hosts, sent.spare, r.Hosts = r.ID, hosts, kept, []v1.RunHost{}
	others, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if whole {
		sent.text, r.Hosts = others, hosts
		return st.tell(eventRun, at, r)
	}
	for i := range hosts {
		if !hosts[i].Equal(kept[i]) {
			r.Hosts = append(r.Hosts, hosts[i])
		}
	}
	if len(r.Hosts) == 0 && bytes.Equal(others, sent.text) {
		return nil
	}
	sent.text = others
	return st.tell(eventChanges, at, r)
}

// event sends an event, unless it says what the last one has said.
func (st *stream) event(name string, at position, value any, last *[]byte) error {
	data, err := json.Marshal(value)
	if err != nil || bytes.Equal(data, *last) {
		return err
	}
	*last = data
	return st.frame(name, at, data)
}

func (st *stream) tell(name string, at position, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return st.frame(name, at, data)
}

func (st *stream) frame(name string, at position, data []byte) error {
	return st.write(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", name, at, data))
}

func (st *stream) write(data []byte) error {
	if err := st.out.SetWriteDeadline(time.Now().Add(st.times.write)); err != nil {
		return err
	}
	if _, err := st.w.Write(data); err != nil {
		return err
	}
	return st.out.Flush()
}
