package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const password = "fakeapi-password-77c1"

func asUser(o *Options) {
	o.Token, o.Login = "", &Credentials{Username: "ann", Password: password + "\n"}
}

func asApprole(roleID, secretID string) func(*Options) {
	return func(o *Options) { o.Token, o.Login = "", &Credentials{RoleID: " " + roleID, SecretID: secretID + "\n"} }
}

func hosts(t *testing.T, c *Client) error {
	t.Helper()
	_, err := c.Hosts(t.Context(), "acme", "")
	return err
}

// loginError returns the LoginError of a request, which must be no *Error.
func loginError(t *testing.T, err error) *LoginError {
	t.Helper()
	login, ok := errors.AsType[*LoginError](err)
	if !ok {
		t.Fatalf("got %v, want a LoginError", err)
	}
	if _, refused := errors.AsType[*Error](err); refused || Missing(err) || HasStatus(err, login.status()) {
		t.Errorf("%v is taken for an answer to the request", err)
	}
	return login
}

func (e *LoginError) status() int {
	if e.Answer == nil {
		return 0
	}
	return e.Answer.Status
}

// TestSessionLogsInOnce: many requests at once take one login, of a secret-id that is good
// for one.
func TestSessionLogsInOnce(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]func(*fakeapi.Server) func(*Options){
		"user":    func(api *fakeapi.Server) func(*Options) { api.SetUser("ann", password); return asUser },
		"approle": func(api *fakeapi.Server) func(*Options) { return asApprole(api.NewApprole("role", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			login := as(api)
			api.Latency(5 * time.Millisecond)
			c := connect(t, api, login)
			wantEqual(t, "logins before the first request", api.Logins(), 0)
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					if err := hosts(t, c); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			wantEqual(t, "logins", api.Logins(), 1)
			wantEqual(t, "requests", len(api.Requests()), 31)
		})
	}
}

// TestSessionLogsInAgain: a token that ends takes one more login for all requests, also
// posts, and for an event stream.
func TestSessionLogsInAgain(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c := connect(t, api, asApprole(api.NewApprole("role", 3)))
	if err := hosts(t, c); err != nil {
		t.Fatal(err)
	}
	api.EndSessions()
	api.Latency(5 * time.Millisecond)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if err := hosts(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantEqual(t, "logins", api.Logins(), 2)
	wantEqual(t, "unauthorized", api.Answers(401) <= 30, true)
	api.EndSessions()
	if _, err := c.Start(t.Context(), "acme", v1.Start{}); err != nil {
		t.Error(err)
	}
	wantEqual(t, "logins", api.Logins(), 3)
	// The secret-id is used up now: the session ends, and is not begun again.
	api.EndSessions()
	for range 3 {
		login := loginError(t, hosts(t, c))
		wantError(t, login, "cannot log in again", "401 Unauthorized: the login is wrong")
		wantEqual(t, "approle", login.Approle, true)
	}
	wantEqual(t, "login requests", api.Count("POST", "/v1/approle-login"), 4)
}

// TestSessionEndsTwiceInARequest: the token of the new login ends as well before the request
// arrives again, although the server has accepted it from others: this is no useless login.
func TestSessionEndsTwiceInARequest(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c := connect(t, api, asApprole(api.NewApprole("role", 3)))
	if err := hosts(t, c); err != nil {
		t.Fatal(err)
	}
	api.EndSessions()
	api.Inject("GET", "/hosts", fakeapi.First(func() {}), fakeapi.First(func() {
		if _, err := c.Runs(t.Context(), "acme", v1.RunFilter{}); err != nil {
			t.Error(err)
		}
		api.EndSessions()
	}))
	if err := hosts(t, c); err != nil {
		t.Error(err)
	}
	wantEqual(t, "logins", api.Logins(), 3)
}

func TestSessionOfAWatch(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetUser("ann", password)
	api.AddRun("acme", v1.Run{Phase: "preparing"})
	c := connect(t, api, asUser)
	if err := hosts(t, c); err != nil {
		t.Fatal(err)
	}
	api.EndSessions()
	if err := c.Watch(t.Context(), "acme", func(v1.Run) bool { return false }); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "logins", api.Logins(), 2)
	api.SetUser("ann", "another one")
	api.EndSessions()
	err := c.Watch(t.Context(), "acme", func(v1.Run) bool { return false })
	wantEqual(t, "again", loginError(t, err).Again, true)
}

// TestSessionIsNotBegunInALoop: a server that logs in and then refuses the token gets one
// login, and one more if it has accepted the first.
func TestSessionIsNotBegunInALoop(t *testing.T) {
	t.Parallel()
	unauthorized := func(n int) (all []fakeapi.Fault) {
		for range n {
			all = append(all, fakeapi.Status(401, "no"))
		}
		return all
	}
	for _, row := range []struct{ accepted, want int }{{0, 1}, {1, 2}} {
		t.Run(fmt.Sprint(row.accepted), func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			api.SetUser("ann", password)
			c := connect(t, api, asUser)
			for range row.accepted {
				if err := hosts(t, c); err != nil {
					t.Fatal(err)
				}
			}
			api.Inject("GET", "/hosts", unauthorized(20)...)
			api.Inject("GET", "/events", unauthorized(20)...)
			for range 5 {
				login := loginError(t, hosts(t, c))
				wantEqual(t, "useless", login.Useless, true)
				wantError(t, login, "the token of the login is not accepted: cannot GET", "401")
				err := c.Watch(t.Context(), "acme", func(v1.Run) bool { return false })
				wantEqual(t, "useless for a watch", loginError(t, err).Useless, true)
			}
			wantEqual(t, "logins", api.Logins(), row.want)
		})
	}
}

// TestSessionWithARefusedPath: a server that does not accept the token for one path alone
// gets one more login, not one for each request of the path.
func TestSessionWithARefusedPath(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetUser("ann", password)
	c := connect(t, api, asUser)
	for range 5 {
		if _, err := c.Runs(t.Context(), "acme", v1.RunFilter{}); err != nil {
			t.Fatal(err)
		}
		api.Inject("GET", "/hosts", fakeapi.Status(401, "no"), fakeapi.Status(401, "no"))
		wantEqual(t, "useless", loginError(t, hosts(t, c)).Useless, true)
	}
	wantEqual(t, "logins", api.Logins(), 2)
}

// TestSessionRefused: a refused login is not tried again, as a server counts them and hears
// nobody any more after some; no answer to one is.
func TestSessionRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault    fakeapi.Fault
		requests int
		want     string
	}{
		"wrong":              {fakeapi.Status(401, "the login is wrong"), 1, "cannot log in: cannot POST /v1/login: 401 Unauthorized: the login is wrong"},
		"too many":           {fakeapi.RetryAfter(429, "1"), 1, "429 Too Many Requests"},
		"no users here":      {fakeapi.Status(404, "this site has neither users nor approles; use a token"), 1, "404 Not Found: this site has neither"},
		"a 404 of a proxy":   {fakeapi.Raw(404, "text/html", "nothing"), 1, "404 Not Found: nothing"},
		"not the API":        {fakeapi.Raw(200, "text/html", "<html>"), 3, "the answer is not that of a login"},
		"no token":           {fakeapi.Raw(200, "application/json", `{"expires-in": 7}`), 3, "has no token that can be used"},
		"a second factor":    {fakeapi.Raw(200, "application/json", `{"totp-required": true}`), 1, "second factor"},
		"repeats the secret": {fakeapi.Status(401, "wrong: "+password), 1, "wrong: (secret)"},
		"sealed":             {fakeapi.Status(503, "strongbox sealed"), 3, "strongbox sealed"},
		"not ready":          {fakeapi.Status(503, "too many logins wait"), 6, "too many logins wait"},
		"closed":             {fakeapi.CloseBefore(), 3, "EOF"},
		"a server error":     {fakeapi.Status(500, "oops"), 3, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fakeapi.New(t)
			for range 20 {
				api.Inject("POST", "/v1/login", row.fault)
			}
			c := connect(t, api, asUser, retries(1))
			for range 3 {
				wantError(t, loginError(t, hosts(t, c)), row.want)
			}
			wantEqual(t, "login requests", api.Count("POST", "/v1/login"), row.requests)
			wantEqual(t, "other requests", len(api.Requests()), row.requests)
			wantEqual(t, "limited", c.limit.take(time.Now()), 0)
		})
	}
}

func TestSessionOfAShortPassword(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.Inject("POST", "/v1/login", fakeapi.Status(401, "wrong: tiger"))
	c := connect(t, api, func(o *Options) { o.Token, o.Login = "", &Credentials{Username: "scott", Password: "tiger"} })
	err := hosts(t, c)
	wantError(t, err, "401", "shorter than 8 characters")
	if strings.Contains(err.Error(), "tiger") {
		t.Errorf("%v shows the password", err)
	}
}

// TestSessionEndsWithItsCaller: who waits for a login can stop, and others go on.
func TestSessionEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetUser("ann", password)
	ctx, cancel := context.WithCancel(t.Context())
	api.Inject("POST", "/v1/login", fakeapi.First(cancel))
	api.Latency(20 * time.Millisecond)
	c := connect(t, api, asUser)
	_, err := c.Hosts(ctx, "acme", "")
	if login := loginError(t, err); !errors.Is(login, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := hosts(t, c); err != nil {
		t.Error(err)
	}
	wantEqual(t, "logins", api.Logins(), 1)
}

// sessions is a server of logins whose tokens end, in the time of a synctest bubble.
type sessions struct {
	life, last time.Duration
	// rename gives another token with each refresh.
	rename bool
	// fail are the statuses of the next refreshes.
	fail []int

	mu                sync.Mutex
	token             string
	begun, end        time.Time
	logins, refreshes int
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	right := r.Header.Get("Authorization") == "Bearer "+s.token && time.Now().Before(s.end)
	switch {
	case r.URL.Path == "/v1/login":
		if s.logins++; r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.token, s.begun = fmt.Sprintf("session-%d", s.logins), time.Now()
	case !right:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case strings.HasSuffix(r.URL.Path, "/refresh"):
		s.refreshes++
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if len(s.fail) > 0 {
			w.WriteHeader(s.fail[0])
			s.fail = s.fail[1:]
			return
		}
		if s.rename {
			s.token = fmt.Sprintf("session-%d-%d", s.logins, s.refreshes)
		}
	default:
		_, _ = io.WriteString(w, "[]")
		return
	}
	if s.end = time.Now().Add(s.life); s.end.After(s.begun.Add(s.last)) {
		s.end = s.begun.Add(s.last)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token": s.token, "expires-in": 1209600, "expires": s.end, "creation-time": s.begun, "renewal-time": time.Now(),
	})
}

// TestSessionIsRefreshed: a token is refreshed before its end for as long as the client is
// there, and there is another login when it cannot be.
func TestSessionIsRefreshed(t *testing.T) {
	t.Parallel()
	const life, last = 10 * time.Minute, 14 * 24 * time.Hour
	for name, row := range map[string]struct {
		server              *sessions
		pause               time.Duration
		logins, least, most int
		requestsIn          time.Duration
	}{
		"for hours":           {&sessions{life: life, last: last}, time.Hour, 1, 12 * 6, 12 * 9, 12 * time.Hour},
		"with another token":  {&sessions{life: life, last: last, rename: true}, time.Hour, 1, 12 * 6, 12 * 9, 12 * time.Hour},
		"to its last end":     {&sessions{life: life, last: time.Hour}, time.Minute, 2, 8, 40, 100 * time.Minute},
		"after failures":      {&sessions{life: life, last: last, fail: []int{503, 503, 503, 503, 500, 429}}, time.Minute, 1, 7, 30, time.Hour},
		"not where it is not": {&sessions{life: life, last: last, fail: []int{404, 404, 404}}, time.Minute, 3, 2, 4, 25 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := piped(t, row.server.ServeHTTP, asUser)
				for begin := time.Now(); time.Since(begin) < row.requestsIn; time.Sleep(row.pause) {
					if err := hosts(t, c); err != nil {
						t.Fatalf("after %s: %v", time.Since(begin), err)
					}
				}
				row.server.mu.Lock()
				defer row.server.mu.Unlock()
				wantEqual(t, "logins", row.server.logins, row.logins)
				if n := row.server.refreshes; n < row.least || n > row.most {
					t.Errorf("%d refreshes, want %d to %d", n, row.least, row.most)
				}
			})
		})
	}
}

func TestReadGrant(t *testing.T) {
	t.Parallel()
	const documented = `"accessor":"x","creation-time":"2022-01-11T15:49:54.078484Z","renewal-time":"2022-01-11T15:49:54.078484Z"`
	for name, row := range map[string]struct {
		body string
		life time.Duration
		want string
	}{
		"as Avassa documents":     {`{"token":"t","expires-in":1209600,"expires":"2022-01-12T15:49:54.078484Z",` + documented + `}`, 24 * time.Hour, ""},
		"seconds alone":           {`{"token":"t","expires-in":60}`, time.Minute, ""},
		"nothing but a token":     {`{"token":" t\n"}`, 0, ""},
		"renewed":                 {`{"token":"t","expires":"2022-01-01T03:00:00Z","creation-time":"2022-01-01T00:00:00Z","renewal-time":"2022-01-01T02:00:00Z"}`, time.Hour, ""},
		"times in another form":   {`{"token":"t","expires-in":"1h","expires":7,"creation-time":null}`, 0, ""},
		"an end before the start": {`{"token":"t","expires-in":-1,"expires":"2022-01-01T00:00:00Z","creation-time":"2022-01-01T02:00:00Z"}`, 0, ""},
		"seconds beyond all":      {`{"token":"t","expires-in":9000000000000000000}`, longestLife, ""},
		"not an object":           {`"t"`, 0, "not that of a login"},
		"two tokens":              {`{"token":"t u"}`, 0, "no token that can be used"},
		"a passkey":               {`{"passkey-required":true}`, 0, "second factor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readGrant([]byte(row.body))
			if row.want != "" {
				wantError(t, err, row.want)
				return
			}
			wantEqual(t, "error", err, nil)
			wantEqual(t, "grant", got, grant{"t", row.life})
		})
	}
}

// TestSecretsOfALoginAreNeverShown: neither what a login is made with nor its token is in an
// error or a debug message, also if the server repeats it.
func TestSecretsOfALoginAreNeverShown(t *testing.T) {
	t.Parallel()
	const secretID = "hidden-secret-id-c0de"
	var mu sync.Mutex
	var told strings.Builder
	var refusing atomic.Bool
	echoing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(r.URL.Path, "/v1/approle-login") && !refusing.Load() {
			_, _ = io.WriteString(w, `{"token":"hidden-session-token"}`)
			return
		}
		w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "%s and %s", body, r.Header.Get("Authorization"))
	})
	for _, refuse := range []bool{false, true} {
		refusing.Store(refuse)
		c := piped(t, echoing, asApprole("hidden-role", secretID), func(o *Options) {
			o.Debug = func(_ context.Context, message string, fields map[string]any) {
				mu.Lock()
				defer mu.Unlock()
				_, _ = fmt.Fprintln(&told, message, fields)
			}
		})
		err := hosts(t, c)
		mu.Lock()
		_, _ = fmt.Fprintf(&told, "%v %+v\n", err, c)
		mu.Unlock()
	}
	for _, secret := range []string{secretID, "hidden-session-token"} {
		if strings.Contains(told.String(), secret) {
			t.Errorf("%s is shown:\n%s", secret, &told)
		}
	}
	if n := strings.Count(told.String(), "(secret)"); n == 0 || !strings.Contains(told.String(), "(token)") {
		t.Errorf("nothing was hidden:\n%s", &told)
	}
}

func TestCredentialsAreChecked(t *testing.T) {
	t.Parallel()
	for want, login := range map[string]Credentials{
		"both of a user and of an approle":       {Username: "a", Password: "b", RoleID: "c", SecretID: "d"},
		"needs a role-id and a secret-id":        {RoleID: "c"},
		"approle needs a role-id and":            {SecretID: "c"},
		"user needs a username and a password":   {Username: "a", Password: "\n"},
		"login of a user needs a username and a": {},
	} {
		_, err := New(Options{Endpoint: "http://h", Login: &login})
		wantError(t, err, want)
	}
}
