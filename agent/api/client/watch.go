package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Watch follows the tenant's runs over server-sent events: see is called with
// the current run (if any) at once and with each later change until it returns
// false, ctx ends or the API refuses. It connects again by itself, from the
// last event seen.
//
// It returns nil when see said so, the context's error when that ended, and an
// *Error for a status of 400 to 499 except 429.
func (c *Client) Watch(ctx context.Context, tenant string, see func(v1.Run) (more bool)) error {
	return c.watch(ctx, tenant, nil, c.pace, func(n News) bool { return n.Run == nil || see(*n.Run) })
}

// News is what an event stream tells: of the situation, of the newest run of an environment, or of
// the connection itself. The other members are nil.
type News struct {
	Situation *v1.Situation
	// Run is the newest run of its environment with all its hosts. What is told later changes the same
	// hosts: nobody may keep them.
	Run *v1.Run
	// Hosts are those of Run that have changed since it was told last.
	Hosts []v1.RunHost
	// Contact tells that the site cannot be reached, or that it can again.
	Contact *Contact
}

// Contact is whether the site can be reached.
type Contact struct {
	// Since is when the site was heard of last.
	Since time.Time
	// Trouble is why it cannot be reached; empty when it can again.
	Trouble string
}

// A person who follows a run is told within 10 seconds that the site cannot be reached,
// and soon after it can that it is back. That needs a site that is heard of more often: older
// ones send a comment every 15 seconds only.
const (
	followIdle    = 9 * time.Second
	shortly       = 5 * time.Second
	followWaitMax = 5 * time.Second
)

// Follow is Watch of the situation and of the connection as well, at a cost that goes by
// what changes and not by how many hosts there are. The ends that are expected of hosts
// are left out. The situation and the runs are those of an environment alone if one is named.
func (c *Client) Follow(ctx context.Context, tenant, environment string, see func(News) (more bool)) error {
	p := c.pace
	p.brisk, p.waitMax = min(p.idle, followIdle), min(p.waitMax, followWaitMax)
	query := url.Values{"hosts": {"changed"}}
	if environment != "" {
		query.Set("environment", environment)
	}
	return c.watch(ctx, tenant, query, p, see)
}

func (c *Client) watch(ctx context.Context, tenant string, query url.Values, p pace, see func(News) (more bool)) error {
	path, err := tenantPath("state", tenant, "/events")
	if err != nil {
		return err
	}
	w := &watch{client: c, q: request{method: http.MethodGet, path: path, query: query}, pace: p, see: see, heard: time.Now()}
	for failures := 0; ; failures++ {
		begin, events := time.Now(), w.events
		pause, err := w.follow(ctx)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return w.ended(ctx)
		case err != nil:
			return err
		case !w.tellLost():
			return nil
		}
		if w.events > events || time.Since(begin) >= p.waitMax {
			failures = 0
		}
		pause = max(pause, jitter(p.waitMin, p.waitMax, failures, rand.Float64()))
		if wait.Sleep(ctx, pause) != nil {
			return w.ended(ctx)
		}
	}
}

// errEnough ends a watch whose see wants no more.
var errEnough = errors.New("enough was seen")

// watch is one call of Watch over its connections.
type watch struct {
	client *Client
	q      request
	pace   pace
	see    func(News) bool
	lastID string
	// runs are those that were told last, by environment; situation was told last.
	runs      map[string]toldRun
	situation *v1.Situation
	// events counts those that came.
	events int
	// trouble is why there is no stream; empty while there is one.
	trouble string
	// heard is when the site was heard of last, lost whether see was told that it cannot
	// be reached.
	heard time.Time
	lost  bool
}

// toldRun is a run that was told, and where its hosts are in it, by name.
type toldRun struct {
	*v1.Run
	places map[string]int
}

// tellLost tells once that the site cannot be reached, if that is so. A stream that ended is
// no trouble: the next one may begin at once.
func (w *watch) tellLost() (more bool) {
	if w.trouble == "" || w.lost {
		return true
	}
	w.lost = true
	return w.see(News{Contact: &Contact{Since: w.heard, Trouble: w.trouble}})
}

// found notes that there is a stream, and tells so if it was told that there is none.
func (w *watch) found() (more bool) {
	was := w.heard
	w.trouble, w.heard = "", time.Now()
	if !w.lost {
		return true
	}
	w.lost = false
	return w.see(News{Contact: &Contact{Since: was}})
}

// ended is the context's error, with the reason why nothing was seen.
func (w *watch) ended(ctx context.Context) error {
	reason := ctx.Err().Error()
	if w.trouble != "" {
		reason += " (no event stream: " + w.trouble + ")"
	}
	err := w.client.callError(w.q, ctx.Err(), reason)
	err.stopped = true
	return err
}

// follow connects once and reads until the stream breaks. An error ends the
// watch; none means to connect again, after pause at the earliest.
func (w *watch) follow(ctx context.Context) (pause time.Duration, err error) {
	listening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	brisk := cmp.Or(w.pace.brisk, w.pace.idle)
	patience := time.AfterFunc(brisk, func() { cancel(silence(brisk)) })
	resp, err := w.connect(listening)
	patience.Stop()
	if err != nil {
		if login, ok := errors.AsType[*LoginError](err); ok && (login.Useless || login.final()) {
			return 0, login
		}
		if hopeless(err) {
			return 0, w.client.failure(w.q, &tally{}, err)
		}
		if ctx.Err() == nil { // Our own end is no trouble.
			w.trouble = w.client.secret.clean(cause(err).Error())
		}
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }() // Nothing was written that could be lost.
	if resp.StatusCode != http.StatusOK {
		return w.refused(resp)
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		return 0, w.client.callError(w.q, nil, fmt.Sprintf("the answer has content type %q, not text/event-stream: perhaps not the API answered",
			w.client.secret.clean(resp.Header.Get("Content-Type"))))
	}
	if !w.found() {
		return 0, errEnough
	}
	err = w.read(&patientReader{r: resp.Body, idle: w.pace.idle, brisk: brisk, end: cancel, heard: &w.heard})
	if silent, is := errors.AsType[silence](context.Cause(listening)); is {
		w.trouble = silent.Error()
	}
	return 0, err
}

// silence is why a watch ends its connection: the site has said nothing for so long.
type silence time.Duration

// Error implements error.
func (s silence) Error() string { return fmt.Sprintf("nothing was heard for %s", time.Duration(s)) }

// connect asks for the stream with the token of the session.
func (w *watch) connect(ctx context.Context) (*http.Response, error) {
	var resp *http.Response
	var err error
	problem := w.client.session.authorized(ctx, func(token string) int {
		if resp != nil {
			_ = resp.Body.Close() // The answer to the token of before.
		}
		if resp, err = w.open(ctx, token); err != nil {
			return 0
		}
		return resp.StatusCode
	})
	if problem != nil && resp != nil {
		_, err = w.refused(resp)
		_ = resp.Body.Close()
		resp = nil
	}
	return resp, w.client.session.judge(problem, err)
}

func (w *watch) open(ctx context.Context, token string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, w.q.method, w.client.endpoint.at(w.q.path, w.q.query), http.NoBody)
	if err != nil {
		return nil, err
	}
	w.client.introduce(r.Header, "text/event-stream", token)
	if w.lastID != "" {
		r.Header.Set("Last-Event-ID", w.lastID)
	}
	begin := time.Now()
	resp, err := w.client.streams.Do(r)
	w.client.tell(r, resp, err, 1, time.Since(begin))
	return resp, err
}

// refused judges an answer that is no stream: the server's own trouble passes,
// a no stays a no.
func (w *watch) refused(resp *http.Response) (pause time.Duration, err error) {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		w.trouble = statusText(resp.StatusCode)
		pause, _ = retryAfter(resp, time.Now())
		return pause, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // What came of it will do: the status decides.
	if err := w.client.judge(w.q, reply{status: resp.StatusCode, header: resp.Header, body: body}); err != nil {
		return 0, err
	}
	return 0, w.client.callError(w.q, nil, statusText(resp.StatusCode)+": the API sends no events")
}

// read hands on events until the stream breaks, which is no error.
func (w *watch) read(r *patientReader) error {
	events := newEvents(r, r.comment)
	for events.next() {
		if err := w.handle(events.event); err != nil {
			return err
		}
	}
	if errors.Is(events.err, errEventTooLarge) {
		return w.client.callError(w.q, events.err, events.err.Error())
	}
	return nil
}

func (w *watch) handle(e event) error {
	w.events++
	if e.id != "" {
		w.lastID = e.id
	}
	if len(e.data) == 0 {
		return nil
	}
	var n News
	var err error
	switch e.kind {
	case "reset": // What was told before is of another log.
		w.runs, w.situation = nil, nil
	case "run":
		n, err = w.whole(e)
	case "changes":
		n, err = w.changes(e)
	case "situation":
		n, err = w.situationOf(e)
	}
	switch {
	case err != nil:
		return err
	case n.Run == nil && n.Situation == nil:
		return nil
	case !w.see(n):
		return errEnough
	}
	return nil
}

// whole reads a run with all its hosts. After a new connection a server may tell
// again what it told before, which is no news.
func (w *watch) whole(e event) (News, error) {
	var run v1.Run
	if err := w.decode(e, "a run", &run); err != nil {
		return News{}, err
	}
	last := w.runs[run.Environment]
	if last.Run != nil && reflect.DeepEqual(*last.Run, run) {
		return News{}, nil
	}
	var changed []v1.RunHost
	known := last.places
	if last.Run == nil || last.ID != run.ID {
		known = nil
	}
	places := make(map[string]int, len(run.Hosts))
	for i, h := range run.Hosts {
		places[h.Hostname] = i
		if at, was := known[h.Hostname]; !was || !h.Equal(last.Hosts[at]) {
			changed = append(changed, h)
		}
	}
	if w.runs == nil {
		w.runs = map[string]toldRun{}
	}
	w.runs[run.Environment] = toldRun{&run, places}
	return News{Run: &run, Hosts: changed}, nil
}

// changes reads a run with those of its hosts that have changed.
func (w *watch) changes(e event) (News, error) {
	var run v1.Run
	if err := w.decode(e, "a run", &run); err != nil {
		return News{}, err
	}
	last := w.runs[run.Environment]
	if last.Run == nil || last.ID != run.ID {
		return News{}, w.client.callError(w.q, nil, fmt.Sprintf("event %q tells what has changed in run %d, which was not told before", e.id, run.ID))
	}
	changed, all := run.Hosts, last.Hosts
	for _, h := range changed {
		at, known := last.places[h.Hostname]
		if !known {
			return News{}, w.client.callError(w.q, nil, fmt.Sprintf("event %q tells of host %q, which is not in run %d", e.id, h.Hostname, run.ID))
		}
		all[at] = h
	}
	run.Hosts = all
	w.runs[run.Environment] = toldRun{&run, last.places}
	return News{Run: &run, Hosts: changed}, nil
}

func (w *watch) situationOf(e event) (News, error) {
	var s v1.Situation
	if err := w.decode(e, "a situation", &s); err != nil {
		return News{}, err
	}
	if w.situation != nil && reflect.DeepEqual(*w.situation, s) {
		return News{}, nil
	}
	w.situation = &s
	return News{Situation: &s}, nil
}

func (w *watch) decode(e event, what string, into any) error {
	if err := json.Unmarshal(e.data, into); err != nil {
		return w.client.callError(w.q, nil, fmt.Sprintf("event %q is not %s: %s: %s",
			e.id, what, w.client.secret.clean(err.Error()), excerpt(e.data, w.client.secret)))
	}
	return nil
}

// patientReader ends the connection when a read waits longer than idle. The
// time that see takes between reads does not count.
type patientReader struct {
	r           io.Reader
	idle, brisk time.Duration
	// end ends the connection.
	end func(error)
	// heard is set to when bytes came, commented to when the last comment did.
	heard     *time.Time
	commented time.Time
}

// comment notes a comment: when the site sends them often, it is silent after a shorter time.
func (p *patientReader) comment() {
	if now := time.Now(); now.Sub(p.commented) < shortly {
		p.idle = p.brisk
	} else {
		p.commented = now
	}
}

// Read waits for bytes with a limit.
func (p *patientReader) Read(b []byte) (int, error) {
	idle := p.idle
	patience := time.AfterFunc(idle, func() { p.end(silence(idle)) })
	defer patience.Stop()
	n, err := p.r.Read(b)
	if n > 0 {
		*p.heard = time.Now()
	}
	return n, err
}
