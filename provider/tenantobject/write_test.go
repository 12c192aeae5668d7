package tenantobject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// note is an object with two members, of which a resource may own one: nil is not owned.
type note struct {
	Left  *string `json:"left,omitempty"`
	Right *string `json:"right,omitempty"`
}

func text(s string) *string { return &s }

func same(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func blank(s *string) bool { return s == nil || *s == "" }

// notePart is the part of a note that is a member.
func notePart(name string, in func(*note) **string) Part[note] {
	of := func(n note) *string { return *in(&n) }
	return Part[note]{
		Owned: func(n note) bool { return of(n) != nil },
		Same:  func(a, b note) bool { return same(of(a), of(b)) || blank(of(a)) && blank(of(b)) },
		Copy:  func(to *note, from note) { *in(to) = of(from) },
		Clear: func(n *note) { *in(n) = text("") },
		Conflicts: func(prior, _, _ note) []Conflict {
			return []Conflict{{At: path.Root(name), Unowned: of(prior) == nil}}
		},
	}
}

// noteKind is a kind of which a resource may own a part, like the configuration.
var noteKind = Kind[note]{
	TypeName: "test_note", Noun: "note",
	Parts: Parts[note]{
		notePart("left", func(n *note) **string { return &n.Left }),
		notePart("right", func(n *note) **string { return &n.Right }),
	},
}

// shelf is a store in memory that can be told to fail. It replaces what it has under the
// precondition of a request, as RFC 9110 says.
type shelf struct {
	body     json.RawMessage
	revision int
	noETags  bool
	// before is called before each request that changes, and may change the shelf itself or
	// fail the request.
	before func(try int) error
	// after is called after each request that has changed something: an error is the answer.
	after func(try int) error
	// tenantless makes a tenant that cannot be read.
	tenantless bool
	log        []string
	changes    int
}

func (s *shelf) etag() string {
	if s.noETags {
		return ""
	}
	return fmt.Sprintf("%q", fmt.Sprint(s.revision))
}

func (s *shelf) set(body string) {
	s.body, s.revision = json.RawMessage(body), s.revision+1
}

func answer(code int, info v1.ErrorInfo) error {
	return &client.Error{Status: code, Errors: []v1.Error{{Message: http.StatusText(code), Info: info}}}
}

func (s *shelf) Get(context.Context) (client.Stored[note], error) {
	s.log = append(s.log, "get")
	if s.body == nil {
		return client.Stored[note]{}, answer(http.StatusNotFound, v1.ErrorInfo{})
	}
	return client.NewStored[note](s.etag(), s.body)
}

// admit begins a request that changes something.
func (s *shelf) admit(what string, when client.Precondition) error {
	s.log = append(s.log, what)
	s.changes++
	if s.before != nil {
		if err := s.before(s.changes); err != nil {
			return err
		}
	}
	if when.IfNoneMatch == "*" && s.body != nil || when.IfMatch != "" && (s.body == nil || when.IfMatch != s.etag()) {
		return answer(http.StatusPreconditionFailed, v1.ErrorInfo{})
	}
	return nil
}

func (s *shelf) Validate(_ context.Context, _ client.Stored[note], _ note, when client.Precondition) ([]v1.IntentWarning, error) {
	return nil, s.admit("validate", when)
}

func (s *shelf) Put(_ context.Context, base client.Stored[note], value note, when client.Precondition) (client.Stored[note], error) {
	if err := s.admit("put", when); err != nil {
		return client.Stored[note]{}, err
	}
	all := map[string]any{}
	if len(base.Text()) > 0 {
		if err := json.Unmarshal(base.Text(), &all); err != nil {
			return client.Stored[note]{}, err
		}
	}
	for name, value := range map[string]*string{"left": value.Left, "right": value.Right} {
		delete(all, name)
		if value != nil {
			all[name] = *value
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return client.Stored[note]{}, err
	}
	s.set(string(body))
	if err := s.lose(); err != nil {
		return client.Stored[note]{}, err
	}
	return client.NewStored[note](s.etag(), s.body)
}

func (s *shelf) lose() error {
	if s.after == nil {
		return nil
	}
	return s.after(s.changes)
}

func (s *shelf) Delete(_ context.Context, when client.Precondition) error {
	if err := s.admit("delete", when); err != nil {
		return err
	}
	s.body = nil
	return s.lose()
}

func (s *shelf) AwaitRun(_ context.Context, id uint64) error {
	s.log = append(s.log, fmt.Sprintf("await %d", id))
	return nil
}

func (s *shelf) TenantExists(context.Context) bool { return !s.tenantless }

// asRead is the object of a shelf as a refresh has read it.
func asRead(t *testing.T, s *shelf) found[note] {
	t.Helper()
	stored, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.log = nil
	return found[note]{stored, true}
}

func left(s string) note { return note{Left: text(s)} }

// TestWrite_creates: a creation writes into what is empty or absent, keeps what it does not
// own, and refuses all else.
func TestWrite_creates(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		there     string
		want      note
		overwrite bool
		result    string
		requests  string
		refused   string
	}{
		"nothing there":                             {"", left("a"), false, `{"left":"a"}`, "get put", ""},
		"an empty object":                           {`{}`, left("a"), false, `{"left":"a"}`, "get put", ""},
		"the other member there":                    {`{"right":"r"}`, left("a"), false, `{"left":"a","right":"r"}`, "get put", ""},
		"an unknown member there":                   {`{"future":{"x":1}}`, left("a"), false, `{"future":{"x":1},"left":"a"}`, "get put", ""},
		"another value there":                       {`{"left":"b"}`, left("a"), false, `{"left":"b"}`, "get", "left"},
		"the same value there":                      {`{"left":"a"}`, left("a"), false, `{"left":"a"}`, "get", ""},
		"another value, to overwrite":               {`{"left":"b","right":"r"}`, left("a"), true, `{"left":"a","right":"r"}`, "get put", ""},
		"the same value, to overwrite":              {`{"left":"a"}`, left("a"), true, `{"left":"a"}`, "get", ""},
		"declares nothing where there is something": {`{"left":"b"}`, left(""), false, `{"left":"b"}`, "get", "left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			if row.there != "" {
				s.set(row.there)
			}
			_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, want: row.want, begin: true, overwrite: row.overwrite}.do(t.Context())
			s.check(t, err, row.result, row.requests, row.refused)
		})
	}
}

// check compares the shelf and an error with what they should be.
func (s *shelf) check(t *testing.T, err error, result, requests, refused string) {
	t.Helper()
	if got := strings.Join(s.log, " "); got != requests {
		t.Errorf("the requests are %q, want %q", got, requests)
	}
	if got := string(s.body); got != result {
		t.Errorf("the object is %s, want %s", got, result)
	}
	var foreign *conflictError
	switch {
	case refused == "" && err != nil:
		t.Errorf("it failed: %v", err)
	case refused != "" && (!errors.As(err, &foreign) || foreign.conflicts[0].At.String() != refused):
		t.Errorf("it ended with %v, want a conflict of %s", err, refused)
	}
}

// TestWrite_updates: an update is one request if nobody else wrote since the plan. It
// starts over for changes of others, and refuses to overwrite them.
func TestWrite_updates(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		since    string
		result   string
		requests string
		refused  string
	}{
		"nobody else wrote":                {"", `{"left":"b","right":"r"}`, "put", ""},
		"somebody changed the other":       {`{"left":"a","right":"s"}`, `{"left":"b","right":"s"}`, "put get put", ""},
		"somebody added an unknown member": {`{"left":"a","x-extra":1}`, `{"left":"b","x-extra":1}`, "put get put", ""},
		"somebody wrote the same":          {`{"left":"b"}`, `{"left":"b"}`, "put get", ""},
		"somebody wrote another":           {`{"left":"c"}`, `{"left":"c"}`, "put get", "left"},
		"somebody removed it":              {`{}`, `{}`, "put get", "left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			s.set(`{"left":"a","right":"r"}`)
			base := asRead(t, s)
			if row.since != "" {
				s.set(row.since)
			}
			// overwrite_existing is for the creation alone.
			_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, base: base, prior: left("a"), want: left("b"), overwrite: true}.do(t.Context())
			s.check(t, err, row.result, row.requests, row.refused)
		})
	}
}

// TestWrite_deletes: a deletion empties what is owned, and deletes the object only if
// nothing of anybody is left in it.
func TestWrite_deletes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		there, since     string
		result, requests string
		refused          string
	}{
		"nothing else there":        {`{"left":"a"}`, "", ``, "delete", ""},
		"the other member there":    {`{"left":"a","right":"r"}`, "", `{"left":"","right":"r"}`, "put", ""},
		"an unknown member there":   {`{"left":"a","future":1}`, "", `{"future":1,"left":""}`, "put", ""},
		"somebody changed it since": {`{"left":"a"}`, `{"left":"b"}`, `{"left":"b"}`, "delete get", "left"},
		"somebody added to it":      {`{"left":"a"}`, `{"left":"a","right":"r"}`, `{"left":"","right":"r"}`, "delete get put", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			s.set(row.there)
			base := asRead(t, s)
			if row.since != "" {
				s.set(row.since)
			}
			_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, base: base, prior: left("a"), want: left(""), remove: true}.do(t.Context())
			s.check(t, err, row.result, row.requests, row.refused)
		})
	}
	t.Run("deleted by somebody else", func(t *testing.T) {
		t.Parallel()
		s := &shelf{}
		_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, prior: left("a"), want: left(""), remove: true}.do(t.Context())
		s.check(t, err, "", "get", "")
	})
}

// TestWrite_waitsForARun: a write that a run blocks waits for its end, however often.
func TestWrite_waitsForARun(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.set(`{"left":"a"}`)
	s.before = func(try int) error {
		if try <= 10 {
			return answer(http.StatusPreconditionFailed, v1.ErrorInfo{Run: uint64(40 + try)})
		}
		return nil
	}
	if _, err := (write[note]{kind: noteKind, store: s, quiet: &silence{}, prior: left("a"), want: left("b")}).do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.log, " "); !strings.HasPrefix(got, "get put await 41 get put await 42") || !strings.HasSuffix(got, "await 50 get put") {
		t.Errorf("the requests are %s", got)
	}
}

// TestWrite_inUse: a deletion that is refused although nobody has changed the object ends with
// the refusal. One that somebody else has changed is tried again.
func TestWrite_inUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.set(`{"left":"a"}`)
		s.before = func(try int) error {
			if try == 1 {
				s.set(`{"left":"a"}`)
				return nil
			}
			return answer(http.StatusPreconditionFailed, v1.ErrorInfo{Field: "name"})
		}
		_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, prior: left("a"), want: left(""), remove: true}.do(t.Context())
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Errors[0].Info.Field != "name" || s.changes != 2 {
			t.Errorf("it ended with %v after %d tries, want the refusal after 2", err, s.changes)
		}
	})
}

// TestWrite_givesUp: who is overtaken by others in each try says so, and has written nothing.
func TestWrite_givesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.set(`{"left":"a"}`)
		s.before = func(try int) error {
			s.set(fmt.Sprintf(`{"left":"a","right":"%d"}`, try))
			return nil
		}
		_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, prior: left("a"), want: left("b")}.do(t.Context())
		var busy *busyError
		if !errors.As(err, &busy) || s.changes != tries {
			t.Errorf("it ended with %v after %d tries, want %d", err, s.changes, tries)
		}
		if string(s.body) != fmt.Sprintf(`{"left":"a","right":"%d"}`, tries) {
			t.Errorf("the object is %s", s.body)
		}
	})
}

// TestWrite_lostAnswers: a write whose answer is lost is followed by reads until it is known
// what became of it. It is sent again only if it was not done.
func TestWrite_lostAnswers(t *testing.T) {
	t.Parallel()
	gateway, broken := answer(http.StatusBadGateway, v1.ErrorInfo{}), answer(http.StatusInternalServerError, v1.ErrorInfo{})
	for name, row := range map[string]struct {
		create   bool
		before   error
		after    error
		somebody string
		result   string
		requests string
		refused  string
		fails    error
	}{
		"a creation that was done":                     {create: true, after: gateway, result: `{"left":"b"}`, requests: "get put get"},
		"a creation that was not done":                 {create: true, before: gateway, result: `{"left":"b"}`, requests: "get put get put"},
		"a creation, and somebody else made another":   {create: true, before: gateway, somebody: `{"left":"c"}`, result: `{"left":"c"}`, requests: "get put get", refused: "left"},
		"an update that was done":                      {after: gateway, result: `{"left":"b"}`, requests: "put get"},
		"an update that was not done":                  {before: gateway, result: `{"left":"b"}`, requests: "put get put"},
		"an update, and somebody else wrote another":   {after: gateway, somebody: `{"left":"c"}`, result: `{"left":"c"}`, requests: "put get", refused: "left"},
		"an update that the server did before a fault": {after: broken, result: `{"left":"b"}`, requests: "put get"},
		"an update that the server failed to do":       {before: broken, result: `{"left":"a"}`, requests: "put get", fails: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{}
				w := write[note]{kind: noteKind, store: s, quiet: &silence{}, want: left("b"), begin: row.create}
				if !row.create {
					s.set(`{"left":"a"}`)
					w.base, w.prior = asRead(t, s), left("a")
				}
				once := func(err error) func(int) error {
					return func(try int) error {
						if try > 1 || err == nil {
							return nil
						}
						if row.somebody != "" {
							s.set(row.somebody)
						}
						return err
					}
				}
				s.before, s.after = once(row.before), once(row.after)
				// What was sent is found out, also after an interruption.
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				_, err := w.do(ctx)
				if row.fails != nil {
					if !errors.Is(err, row.fails) {
						t.Errorf("it ended with %v", err)
					}
					err = nil
				}
				s.check(t, err, row.result, row.requests, row.refused)
			})
		})
	}
}

// TestWrite_interrupted: an interruption stops no write that was sent, and begins none.
func TestWrite_interrupted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, after error
		result        string
		fails         error
	}{
		"while a write is in progress": {result: `{"left":"b"}`},
		"whose answer is lost":         {after: answer(http.StatusBadGateway, v1.ErrorInfo{}), result: `{"left":"b"}`},
		"that the server never got":    {before: answer(http.StatusBadGateway, v1.ErrorInfo{}), result: `{"left":"a"}`, fails: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			s.set(`{"left":"a"}`)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s.before = func(int) error {
				stop()
				return row.before
			}
			s.after = func(int) error { return row.after }
			_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, base: asRead(t, s), prior: left("a"), want: left("b")}.do(ctx)
			if !errors.Is(err, row.fails) || (err == nil) != (row.fails == nil) || string(s.body) != row.result {
				t.Errorf("it ended with %v and %s", err, s.body)
			}
		})
	}
}

// TestSilence: one operation asks a silent server once a second, for all; each ends with its
// own limit, and the server's return ends the wait of all.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet, back := &silence{}, time.Now().Add(6*time.Second)
		var asked atomic.Int64
		ask := func(context.Context) error {
			asked.Add(1)
			if time.Now().Before(back) {
				return answer(http.StatusBadGateway, v1.ErrorInfo{})
			}
			return nil
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := quiet.outlast(t.Context(), ask); err != nil {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			if err := quiet.outlast(ctx, ask); !errors.Is(err, context.DeadlineExceeded) && !client.HasStatus(err, http.StatusBadGateway) {
				t.Errorf("it ended with %v", err)
			}
		})
		all.Wait()
		if n := asked.Load(); n > 11+6+10 {
			t.Errorf("the server was asked %d times", n)
		}
		if late := time.Since(back); late > time.Second {
			t.Errorf("the wait ended %s after the server was back", late)
		}
	})
}

// TestWrite_withoutETags: a server that sends no ETags is read before each write, and after
// it, so that a write that did not happen is told.
func TestWrite_withoutETags(t *testing.T) {
	t.Parallel()
	s := &shelf{noETags: true}
	s.set(`{"left":"a"}`)
	w := write[note]{kind: noteKind, store: s, quiet: &silence{}, base: asRead(t, s), prior: left("a"), want: left("b")}
	written, err := w.do(t.Context())
	s.check(t, err, `{"left":"b"}`, "get put", "")
	s.set(`{"left":"c"}`)
	var diags diag.Diagnostics
	if got := w.readBack(t.Context(), written, &diags); *got.Value.Left != "c" {
		t.Errorf("it read back %+v", got.Value)
	}
	if len(diags) != 1 || !strings.Contains(diags[0].Summary(), "differs from what was written") {
		t.Errorf("the diagnostics are %v", diags)
	}
}

// TestWrite_otherFailures: an answer that is no precondition ends a write, with its error.
func TestWrite_otherFailures(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		s := &shelf{}
		s.before = func(int) error { return answer(code, v1.ErrorInfo{}) }
		_, err := write[note]{kind: noteKind, store: s, quiet: &silence{}, want: left("a"), begin: true}.do(t.Context())
		if !client.HasStatus(err, code) || s.changes != 1 {
			t.Errorf("%d: it ended with %v after %d tries", code, err, s.changes)
		}
	}
}

// TestRemoved: a read proves that an object is gone only by a 404 of the object itself.
func TestRemoved(t *testing.T) {
	t.Parallel()
	here, nowhere := &shelf{}, &shelf{tenantless: true}
	for name, row := range map[string]struct {
		at   *shelf
		err  error
		gone bool
	}{
		"404 that names the object":            {nowhere, answer(http.StatusNotFound, v1.ErrorInfo{Field: "rollout", Missing: "rollout"}), true},
		"404 of another server":                {here, answer(http.StatusNotFound, v1.ErrorInfo{}), true},
		"404 of a tenant that is not readable": {nowhere, answer(http.StatusNotFound, v1.ErrorInfo{}), false},
		"403":                                  {here, answer(http.StatusForbidden, v1.ErrorInfo{}), false},
		"503":                                  {here, answer(http.StatusServiceUnavailable, v1.ErrorInfo{}), false},
		"no answer":                            {here, errors.New("connection refused"), false},
	} {
		if got := removed[note](t.Context(), row.at, row.err); got != row.gone {
			t.Errorf("%s: got %v, want %v", name, got, row.gone)
		}
	}
}
