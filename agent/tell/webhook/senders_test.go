package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// site is a store with the news of a tenant, and its receivers.
type site struct {
	t       *testing.T
	mu      sync.Mutex
	store   *faulty
	told    int
	changed wait.Watchers
	// receivers answer by the host of the address.
	receivers map[string]http.HandlerFunc
	box       *strongbox.Box
	boxDir    string
	at        func(string)
	senders   *Senders
	// scripts are the paths of the news scripts, and takes is what each does.
	scripts []string
	takes   func(ctx context.Context, path string, n v1.News) Outcome
	stop    func()
}

// faulty is a store that may refuse to keep the states of webhooks.
type faulty struct {
	*memory.Store
	refuse atomic.Bool
}

func (f *faulty) PutWebhookState(ctx context.Context, tenant, name string, state store.WebhookState) error {
	if f.refuse.Load() {
		return errors.New("no space left on device")
	}
	return f.Store.PutWebhookState(ctx, tenant, name, state)
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	box := strongbox.Open(strongbox.Options{Dir: dir, Hash: strongbox.Hash{Memory: 64, Time: 1, Threads: 1}})
	return &site{t: t, store: &faulty{Store: memory.NewStore()}, receivers: map[string]http.HandlerFunc{}, box: box, boxDir: dir}
}

// start starts the senders, as a process of the site does.
func (s *site) start() {
	s.t.Helper()
	s.senders = New(Options{
		Store: s.store, Box: s.box, Version: "test", Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 1 }, At: s.at,
		Scripts: s.scripts, Script: func(ctx context.Context, path string, n v1.News, _ func(exit, said string)) Outcome {
			return s.takes(ctx, path, n)
		},
		Client: func() *http.Client {
			return &http.Client{Transport: s, CheckRedirect: newClient(dial.Rule{}).CheckRedirect}
		},
	})
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.senders.Run(ctx, "acme", s, func(Verdict) {}) })
	s.stop = func() {
		cancel()
		running.Wait()
	}
	s.t.Cleanup(s.stop)
	synctest.Wait()
}

// RoundTrip hands a request to the receiver at its host.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	receiver := s.receivers[r.URL.Hostname()]
	s.mu.Unlock()
	if receiver == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	w := httptest.NewRecorder()
	receiver(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// News is that of a controller.
func (s *site) News(ctx context.Context, after uint64) (all []v1.News, oldest, newest uint64, err error) {
	kept, err := s.store.News(ctx, "acme")
	for _, n := range kept {
		if n.Number > after {
			all = append(all, n.News)
		}
	}
	if len(kept) > 0 {
		oldest, newest = kept[0].Number, kept[len(kept)-1].Number
	}
	return all, oldest, newest, err
}

func (s *site) Watch(context.Context) (<-chan struct{}, func(), error) {
	changed, leave := s.changed.Add()
	return changed, leave, nil
}

// happen tells n news of a type.
func (s *site) happen(n int, kind string) {
	s.t.Helper()
	for range n {
		s.told++
		if _, err := s.store.PutNews(s.t.Context(), "acme", v1.News{ID: fmt.Sprint("msg_", s.told), Type: kind, Timestamp: time.Now().UTC()}, 0); err != nil {
			s.t.Fatal(err)
		}
	}
	s.changed.Notify()
	synctest.Wait()
}

// put declares a webhook.
func (s *site) put(name string, w v1.Webhook) {
	s.t.Helper()
	_, base, _ := s.store.Webhook(s.t.Context(), "acme", name)
	if _, err := s.senders.PutWebhook(s.t.Context(), "acme", name, w, base); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func (s *site) state(name string) v1.WebhookState {
	s.t.Helper()
	state, err := s.senders.State(s.t.Context(), "acme", name)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// receiver checks signatures, keeps the ids of what it was sent, and answers as told.
type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	ids    []string
	times  []time.Time
	answer func(n int, w http.ResponseWriter)
}

// receive makes a receiver at a host.
func (s *site) receive(host string, answer func(n int, w http.ResponseWriter)) *receiver {
	r := &receiver{t: s.t, answer: answer}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receivers[host] = r.serve
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		r.t.Error(err)
	}
	key, err := v1.WebhookKey(secret)
	if err != nil {
		r.t.Error(err)
	}
	var n v1.News
	if err := errors.Join(Verify(key, request.Header, body, time.Now()), json.Unmarshal(body, &n)); err != nil || n.ID != request.Header.Get(HeaderID) {
		r.t.Errorf("received %q with %v: %v", body, request.Header, err)
	}
	r.mu.Lock()
	r.ids = append(r.ids, strings.TrimPrefix(n.ID, "msg_"))
	r.times = append(r.times, time.Now())
	n1 := len(r.ids)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(n1, w)
	}
}

func (r *receiver) received() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.ids, " ")
}

// inSite plays a test in simulated time.
func inSite(t *testing.T, play func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.start()
		play(t, s)
	})
}

var at = v1.Webhook{URL: "https://a.example/hook", Secret: secret}

// TestDelivery checks that news are sent once, signed and in their order, from the making
// of the webhook on, and only those that are wanted.
func TestDelivery(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		s.happen(2, v1.NewsRunOpened)
		all, some := s.receive("a.example", nil), s.receive("b.example", nil)
		s.put("all", at)
		s.put("some", v1.Webhook{URL: "https://b.example/", Secret: secret, News: []string{v1.NewsHostFailed}})
		s.happen(2, v1.NewsRunOpened)
		s.happen(1, v1.NewsHostFailed)
		if got := all.received(); got != "3 4 5" {
			t.Errorf("received is %q", got)
		}
		if got := some.received(); got != "5" {
			t.Errorf("of one type received is %q", got)
		}
		if state := s.state("all"); state.Status != v1.WebhookDelivering || state.Delivered != 3 || state.Queued != 0 || state.Error != "" {
			t.Errorf("the state is %+v", state)
		}
		s.stop()
		s.happen(1, v1.NewsRunFinished)
		s.start()
		if got := all.received(); got != "3 4 5 6" {
			t.Errorf("after a restart received is %q", got)
		}
	})
}

// TestReceiverDown checks that news wait for a receiver that is down, that they are tried
// at growing intervals, and that another receiver is not held up.
func TestReceiverDown(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		other := s.receive("b.example", nil)
		s.put("down", at)
		s.put("up", v1.Webhook{URL: "https://b.example/", Secret: secret})
		begun := time.Now()
		s.happen(3, v1.NewsRunOpened)
		if got := other.received(); got != "1 2 3" {
			t.Errorf("the other receiver was sent %q", got)
		}
		time.Sleep(time.Minute)
		if state := s.state("down"); state.Status != v1.WebhookRetrying || state.Queued != 3 || state.Tries != 4 || state.Error != "dial tcp: connection refused" || state.NextTry == nil {
			t.Errorf("the state is %+v", state)
		}
		up := s.receive("a.example", nil)
		s.stop() // A restart does not change when it is tried again.
		s.start()
		time.Sleep(time.Minute)
		if got := up.received(); got != "1 2 3" || up.times[0].Sub(begun) != 75*time.Second {
			t.Errorf("received is %q, after %s", got, up.times[0].Sub(begun))
		}
		if state := s.state("down"); state.Status != v1.WebhookDelivering || state.Queued != 0 || state.Tries != 0 || state.Error != "" {
			t.Errorf("at the end the state is %+v", state)
		}
	})
}

// TestChangedWebhookIsTriedAtOnce checks that who mends an address need not wait.
func TestChangedWebhookIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		s.put("hook", at)
		s.happen(1, v1.NewsRunOpened)
		time.Sleep(time.Hour)
		up := s.receive("b.example", nil)
		s.put("hook", v1.Webhook{URL: "https://b.example/"}) // Without a secret: that of before.
		if got := up.received(); got != "1" {
			t.Errorf("received is %q", got)
		}
	})
}

// TestCrash checks that news of which nobody knows whether they were delivered are sent
// again under the same id: the process ends before the try, after it, or before what came
// of it was on disk.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"before delivery", "after delivery", "disk full"} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.at = func(at string) {
					if at == label {
						runtime.Goexit() // Nothing of what follows in the process is done.
					}
				}
				s.store.refuse.Store(label == "disk full")
				a := s.receive("a.example", nil)
				s.start()
				s.put("hook", at)
				s.happen(2, v1.NewsRunOpened)
				s.stop()
				s.at = nil
				s.store.refuse.Store(false)
				s.start()
				want := map[string]string{"before delivery": "1 2", "after delivery": "1 1 2", "disk full": "1 1 2"}[label]
				if got := a.received(); got != want {
					t.Errorf("received is %q, not %q", got, want)
				}
			})
		})
	}
}

// TestGone checks that a receiver which answers 410 is sent nothing more before the webhook
// is written again, also after a restart.
func TestGone(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		gone := s.receive("a.example", func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.WriteHeader(http.StatusGone)
			}
		})
		s.put("hook", at)
		s.happen(2, v1.NewsRunOpened)
		s.stop()
		s.start()
		time.Sleep(48 * time.Hour)
		if got := gone.received(); got != "1" {
			t.Errorf("received is %q", got)
		}
		if state := s.state("hook"); state.Status != v1.WebhookStopped || state.Queued != 2 || state.Error != "the receiver answered 410 Gone" {
			t.Errorf("the state is %+v", state)
		}
		s.put("hook", at)
		if got := gone.received(); got != "1 1 2" {
			t.Errorf("written again, received is %q", got)
		}
	})
}

// TestTooManyRequests checks that a receiver which asks for time is given it.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		busy := s.receive("a.example", func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		s.put("hook", at)
		s.happen(1, v1.NewsRunOpened)
		time.Sleep(time.Hour)
		if got := busy.received(); got != "1 1" || busy.times[1].Sub(busy.times[0]) != 10*time.Minute {
			t.Errorf("received is %q, at %v", got, busy.times)
		}
	})
}

// TestDeadLetters checks that news which the receiver refuses do not hold up others for
// long, that they can be sent again, and that these are bounded.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		var mu sync.Mutex
		refuses := map[string]bool{"1": true, "3": true}
		var r *receiver
		r = s.receive("a.example", func(_ int, w http.ResponseWriter) {
			mu.Lock()
			defer mu.Unlock()
			if refuses[r.last()] {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		s.put("hook", at)
		s.happen(4, v1.NewsRunOpened)
		time.Sleep(3 * time.Hour)
		state := s.state("hook")
		if state.Delivered != 2 || state.DeadCount != 2 || state.Queued != 0 || state.Dead[0].News.ID != "msg_1" || state.Dead[0].Tries != maxRefusals ||
			state.Dead[0].Error != "the receiver answered 400 Bad Request" {
			t.Fatalf("the state is %+v", state)
		}
		resend := func(ids ...string) string {
			resent, err := s.senders.Resend(t.Context(), "acme", "hook", ids)
			return fmt.Sprintf("%d delivered, %d left, %s, %v", resent.Delivered, resent.Left, resent.Error, err)
		}
		if got := resend("msg_2"); got != "0 delivered, 2 left, , no such news are dead" {
			t.Errorf("what is not dead: %s", got)
		}
		if got := resend(); got != "0 delivered, 2 left, the receiver answered 400 Bad Request, <nil>" {
			t.Errorf("while it refuses: %s", got)
		}
		mu.Lock()
		delete(refuses, "3")
		mu.Unlock()
		if got := resend("msg_3"); got != "1 delivered, 1 left, , <nil>" {
			t.Errorf("one of them: %s", got)
		}
		mu.Lock()
		clear(refuses)
		mu.Unlock()
		s.stop()
		s.start()
		if got := resend(); got != "1 delivered, 0 left, , <nil>" {
			t.Errorf("after a restart: %s", got)
		}
		if state := s.state("hook"); state.Delivered != 4 || state.DeadCount != 0 {
			t.Errorf("at the end the state is %+v", state)
		}
	})
}

func (r *receiver) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[len(r.ids)-1]
}

// TestLongOutage checks that the queue of a receiver that is down is bounded, that what is
// dropped is counted, and that news of more than a day are given up after one try.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		s.put("hook", at)
		s.happen(v1.MaxNews+200, v1.NewsHostFailed)
		if state := s.state("hook"); state.Queued != v1.MaxNews {
			t.Errorf("the state is %+v", state)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		state := s.state("hook")
		if state.DeadCount == 0 || state.DeadCount > maxDead || state.Dropped < 200 {
			t.Errorf("after a day %d are queued, %d dead, %d dropped", state.Queued, state.DeadCount, state.Dropped)
		}
		up := s.receive("a.example", nil)
		s.happen(1, v1.NewsRunFinished)
		time.Sleep(time.Hour)
		if got := up.received(); !strings.HasSuffix(got, fmt.Sprint(v1.MaxNews+201)) {
			t.Errorf("received is %.100q", got)
		}
		state = s.state("hook")
		if total := state.Delivered + state.Dropped + uint64(state.DeadCount); state.Queued != 0 || total != v1.MaxNews+201 {
			t.Errorf("of %d news %d were delivered, %d dropped and %d are dead", v1.MaxNews+201, state.Delivered, state.Dropped, state.DeadCount)
		}
	})
}

// TestDeletedWebhook checks that a webhook that is made again under the name of one that was
// deleted has none of its queue.
func TestDeletedWebhook(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		s.put("hook", at)
		s.happen(3, v1.NewsRunOpened)
		_, revision, err := s.store.Webhook(t.Context(), "acme", "hook")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.senders.DeleteWebhook(t.Context(), "acme", "hook", revision); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if state, err := s.store.WebhookState(t.Context(), "acme", "hook"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the state of a deleted webhook is kept: %+v, %v", state, err)
		}
		a := s.receive("a.example", nil)
		s.put("hook", at)
		s.happen(1, v1.NewsRunOpened)
		if got := a.received(); got != "4" {
			t.Errorf("received is %q", got)
		}
	})
}

// TestSecret checks that a webhook without a secret is refused when it is new, that none is
// kept as it is or returned, and that one which was sealed elsewhere is told to be.
func TestSecret(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		if _, err := s.senders.PutWebhook(t.Context(), "acme", "hook", v1.Webhook{URL: at.URL}, store.Revision{}); !errors.Is(err, ErrNoSecret) {
			t.Errorf("a webhook without a secret: %v", err)
		}
		s.put("hook", at)
		kept, revision, err := s.store.Webhook(t.Context(), "acme", "hook")
		text, jsonErr := json.Marshal(kept)
		if err = errors.Join(err, jsonErr); err != nil || strings.Contains(string(text), secret) || kept.Sealed == "" {
			t.Errorf("kept is %s, %v", text, err)
		}
		if shown, _, err := s.senders.Webhook(t.Context(), "acme", "hook"); err != nil || shown.Secret != "" || shown.URL != at.URL {
			t.Errorf("shown is %+v, %v", shown, err)
		}
		other := strongbox.Open(strongbox.Options{Dir: t.TempDir()})
		if kept.Sealed, err = other.Seal([]byte(secret), purpose("acme", "hook")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.PutWebhook(t.Context(), "acme", "hook", kept, revision); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a := s.receive("a.example", nil)
		test, err := s.senders.Test(t.Context(), "acme", "hook", "ann", "msg_test")
		if err != nil || test.Delivered || !strings.Contains(test.Error, "its secret cannot be read") || a.received() != "" {
			t.Errorf("with a secret of another site: %+v, %v", test, err)
		}
	})
}

const passphrase = "correct horse battery staple"

// sealedSite gives a site a webhook and news, and then a strongbox that a passphrase opens:
// it is sealed when the senders start.
func sealedSite(t *testing.T, s *site, rotate bool) {
	t.Helper()
	s.put("hook", at)
	dir := s.boxDir
	if rotate {
		if err := s.box.Rotate(nil); err != nil {
			t.Fatal(err)
		}
	} else if err := s.box.Rewrap(strongbox.Target{Way: strongbox.Passphrase, Secret: []byte(passphrase)}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.box = strongbox.Open(strongbox.Options{Dir: dir})
	s.start()
}

// TestSealedStrongbox checks that a webhook of a sealed site tries nothing, whatever the time,
// gives up nothing, and sends all once the site is unsealed.
func TestSealedStrongbox(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		a := s.receive("a.example", nil)
		sealedSite(t, s, false)
		s.happen(1, v1.NewsRunOpened)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if state := s.state("hook"); a.received() != "" || state.Queued != 1 || len(state.Dead) != 0 || state.Error != "" {
			t.Errorf("sealed: received is %q, the state %+v", a.received(), state)
		}
		if err := s.box.Unseal([]byte(passphrase)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := a.received(); got != "1" {
			t.Errorf("unsealed: received is %q", got)
		}
	})
}

// TestRotatedStrongbox checks that the newest data key seals the secret of a webhook after a
// start, and that its news are sent as before.
func TestRotatedStrongbox(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		a := s.receive("a.example", nil)
		sealedSite(t, s, true)
		synctest.Wait()
		kept, _, err := s.store.Webhook(t.Context(), "acme", "hook")
		if err != nil || s.box.Stale(kept.Sealed) || kept.Sealed == "" || !strings.HasPrefix(kept.Sealed, newestKey(t, s.box)) {
			t.Errorf("the secret is sealed by an older key: %q, %v", kept.Sealed, err)
		}
		s.happen(1, v1.NewsRunOpened)
		if got := a.received(); got != "1" {
			t.Errorf("received is %q", got)
		}
	})
}

// newestKey returns the id of the key that a strongbox seals with.
func newestKey(t *testing.T, box *strongbox.Box) string {
	t.Helper()
	sealed, err := box.Seal(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(sealed, ":")
	return id
}

// TestTest checks that a test reaches the receiver of a webhook that is disabled, and that
// its queue does not.
func TestTest(t *testing.T) {
	t.Parallel()
	inSite(t, func(t *testing.T, s *site) {
		a := s.receive("a.example", nil)
		s.put("hook", v1.Webhook{URL: at.URL, Secret: secret, Disabled: true})
		s.happen(1, v1.NewsRunOpened)
		test, err := s.senders.Test(t.Context(), "acme", "hook", "ann", "msg_test")
		if err != nil || !test.Delivered || a.received() != "test" {
			t.Errorf("the test: %+v, %v, received is %q", test, err, a.received())
		}
		if state := s.state("hook"); state.Status != v1.WebhookDisabled || state.Queued != 1 {
			t.Errorf("the state is %+v", state)
		}
		if _, err := s.senders.Test(t.Context(), "acme", "none", "ann", "msg_test"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a webhook that is not there: %v", err)
		}
		s.put("hook", at)
		if got := a.received(); got != "test 1" {
			t.Errorf("enabled, received is %q", got)
		}
	})
}

// TestHostileReceivers checks, over the network, that an answer which is endless, slow or
// has a huge header ends, and that no redirect is followed.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	reached := map[string]int{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		reached[r.URL.Path]++
		mu.Unlock()
		switch r.URL.Path {
		case "/endless":
			for chunk := slices.Repeat([]byte("x"), 1<<16); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/header":
			w.Header().Set("Long", strings.Repeat("x", 1<<20))
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/slow":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"/endless":  "",
		"/header":   "its header is too long",
		"/redirect": "the receiver redirects (307), which is not followed",
		"/slow":     "the receiver has not answered within",
	} {
		t.Run(strings.TrimPrefix(path, "/"), func(t *testing.T) {
			t.Parallel()
			client := clientOf(anywhere(t).Transport(func(d *net.Dialer) *http.Transport {
				trusting := newTransport(d)
				trusting.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone() //nolint:forcetypeassert // it is
				return trusting
			}))
			client.Timeout = 2 * time.Second
			o := post(t.Context(), client, "test", server.URL+path, []byte("key"), v1.News{ID: "msg_1"}, time.Now())
			if got := o.Reason(); !strings.HasPrefix(got, want) && !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("the outcome is %+v; want %q", o, want)
			}
			mu.Lock()
			defer mu.Unlock()
			if reached[path] != 1 || reached["/elsewhere"] != 0 {
				t.Errorf("reached was %v", reached)
			}
		})
	}
}
