package join

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
)

// TestManyAtOnce lets 10,000 hosts join at once with a token of ten places: ten get in, and the
// others learn that it has no place left.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.addToken(Token{Host: "shop-*", MaxHosts: 10})
	tokens := s.open(nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	in, full := map[string]bool{}, 0
	for i := range 10_000 {
		all.Go(func() {
			name := "shop-" + strconv.Itoa(i)
			_, err := tokens.Join(secret, asks(name, "K"+name), "192.0.2.7", now, s)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in[name] = true
			case errors.Is(err, ErrFull):
				full++
			default:
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	file, err := s.open(nil).read(id)
	if err != nil || len(in) != 10 || full != 9990 || len(s.keys) != 10 || len(file.Uses) != 10 {
		t.Errorf("%d hosts are in, %d found no place; the site has %d keys, the token %d hosts: %v", len(in), full, len(s.keys), len(file.Uses), err)
	}
	for _, u := range file.Uses {
		if !in[u.Host] || !u.Registered || s.keys[u.Key] != "acme/"+u.Host || !u.At.Equal(now) || u.From != "192.0.2.7" {
			t.Errorf("a place is %+v", u)
		}
	}
}

// TestPlaces plays random histories of joins, crashes, withdrawals and verdicts with a token for
// several hosts. At each moment: no more hosts have a key than the token has places, and no key that was
// withdrawn, or that nobody has approved if that is asked for.
func TestPlaces(t *testing.T) {
	t.Parallel()
	type crash struct{}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 26))
		s := newSite(t)
		token := Token{Host: "h*", MaxHosts: 1 + random.IntN(3), Approve: random.IntN(2) == 0, Replace: random.IntN(2) == 0}
		secret, id := s.addToken(token)
		withdrawn, approved := map[string]bool{}, map[string]bool{}
		history := ""
		for range 40 {
			host, key := fmt.Sprintf("h%d", random.IntN(5)), fmt.Sprintf("K%d", random.IntN(6))
			actions, at := 0, random.IntN(8) // Most of them are no action: nothing crashes.
			tokens := s.open(func(string) {
				if actions++; actions == at {
					panic(crash{})
				}
			})
			func() {
				defer func() {
					if r := recover(); r != nil && r != (crash{}) {
						panic(r)
					}
				}()
				switch what := random.IntN(6); {
				case what < 4:
					history += fmt.Sprintf("join %s %s %d; ", host, key, at)
					_, _ = tokens.Join(secret, asks(host, key), "192.0.2.7", now, s)
				case what < 5:
					history += fmt.Sprintf("verdict %s %s %d; ", host, key, at)
					v := Verdict{Tenant: "acme", Host: host, Key: key, Approve: random.IntN(3) > 0, By: "ann"}
					approved[key+" acme/"+host] = approved[key+" acme/"+host] || v.Approve
					_, _ = tokens.Decide(v, now, s)
				default:
					file, err := tokens.read(id)
					inPlace := slices.ContainsFunc(file.Uses, func(u Use) bool { return u.Key == key })
					if err != nil || s.keys[key] == "" || !inPlace || token.MaxHosts == 1 {
						return
					}
					history += fmt.Sprintf("withdraw %s; ", key)
					if err := tokens.Forget(key, "acme", strings.TrimPrefix(s.keys[key], "acme/")); err != nil {
						t.Fatal(err)
					}
					delete(s.keys, key)
					withdrawn[key] = true
				}
			}()
			file, err := s.open(nil).read(id)
			if err != nil {
				t.Fatal(err)
			}
			hosts := map[string]bool{}
			for key, host := range s.keys {
				hosts[host] = true
				if withdrawn[key] || token.Approve && !approved[key+" "+host] {
					t.Fatalf("seed %d: key %s, withdrawn: %t, is in without approval: %s", seed, key, withdrawn[key], history)
				}
			}
			if len(file.Uses) > token.MaxHosts || len(hosts) > token.MaxHosts {
				t.Fatalf("seed %d: %d hosts have a key, and %d of %d places are taken: %s", seed, len(hosts), len(file.Uses), token.MaxHosts, history)
			}
			for _, u := range file.Uses {
				has := s.keys[u.Key] == "acme/"+u.Host
				if u.Registered && !has && !withdrawn[u.Key] {
					t.Fatalf("seed %d: host %s has its key: %t, and its place is %+v: %s", seed, u.Host, has, u, history)
				}
			}
		}
	}
}

// TestApproval keeps a host waiting until a person has decided on it, whatever the site does in
// between.
func TestApproval(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.addToken(Token{Host: "shop-*", MaxHosts: 3, Approve: true, Labels: map[string]string{"shop": "basel"}})
	join := func(host, key string) (Joined, error) {
		return s.open(nil).Join(secret, asks(host, key), "192.0.2.7", now, s)
	}
	decide := func(host, key string, approve bool, at time.Time) error {
		_, err := s.open(nil).Decide(Verdict{Tenant: "acme", Host: host, Key: key, Approve: approve, By: "ann"}, at, s)
		return err
	}
	for i := range 2 { // The answer may be lost.
		if joined, err := join("shop-1", "K1"); err != nil || !joined.Waiting {
			t.Errorf("attempt %d: %+v, %v", i, joined, err)
		}
	}
	if _, err := join("shop-2", "K2"); err != nil {
		t.Error(err)
	}
	waiting, err := s.open(nil).Waiting(now)
	if err != nil || len(waiting) != 2 || waiting[0].Use.Host != "shop-1" || waiting[0].ID != id || waiting[0].Token.Labels["shop"] != "basel" || len(s.keys) > 0 {
		t.Errorf("there wait %+v, %v, and the keys are %v", waiting, err, s.keys)
	}
	tokens := s.open(nil)
	if !tokens.Waits("K1", now) || tokens.Waits("K9", now) || tokens.Waits("K1", now.Add(time.Hour)) {
		t.Error("who waits by a key is not who has joined with it")
	}
	for name, err := range map[string]error{
		"another key":            decide("shop-1", "K2", true, now),
		"another host":           decide("shop-9", "K1", true, now),
		"when the token is over": decide("shop-1", "K1", true, now.Add(time.Hour)),
	} {
		if !errors.Is(err, ErrNotWaiting) || len(s.keys) > 0 {
			t.Errorf("%s: %v, and the keys are %v", name, err, s.keys)
		}
	}
	if _, err := s.open(nil).Decide(Verdict{Tenant: "beta", Host: "shop-1", Key: "K1", Approve: true}, now, s); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("of another tenant: %v", err)
	}
	if err := decide("shop-1", "K1", true, now); err != nil || s.keys["K1"] != "acme/shop-1" {
		t.Errorf("approved: %v, %v", err, s.keys)
	}
	if joined, err := join("shop-1", "K1"); err != nil || joined.Waiting {
		t.Errorf("the approved host asks again: %+v, %v", joined, err)
	}
	if err := decide("shop-2", "K2", false, now); err != nil || len(s.keys) != 1 {
		t.Errorf("refused: %v, %v", err, s.keys)
	}
	if _, err := join("shop-2", "K2"); !errors.Is(err, ErrRefused) {
		t.Errorf("the refused host asks again: %v", err)
	}
	if _, err := join("shop-2", "K3"); err != nil {
		t.Errorf("another machine of that name: %v", err)
	}
	if err := s.open(nil).Remove(id); err != nil {
		t.Fatal(err)
	}
	if err := decide("shop-2", "K3", true, now); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("after the token was removed: %v", err)
	}
}

// TestVerdictCrashes ends the site at each action of an approval. The same verdict, or the host that
// asks again, completes it; nobody can refuse the host meanwhile.
func TestVerdictCrashes(t *testing.T) {
	t.Parallel()
	type crash struct{}
	for _, again := range []string{"verdict", "join"} {
		for _, at := range []string{"before verdict", "after verdict", "after register", "after join"} {
			s := newSite(t)
			secret, _ := s.addToken(Token{Host: "h*", MaxHosts: 2, Approve: true})
			if _, err := s.open(nil).Join(secret, asks("h1", "K1"), "192.0.2.7", now, s); err != nil {
				t.Fatal(err)
			}
			v := Verdict{Tenant: "acme", Host: "h1", Key: "K1", Approve: true, By: "ann"}
			func() {
				defer func() {
					if r := recover(); r != (crash{}) {
						t.Errorf("%s: no crash: %v", at, r)
					}
				}()
				_, _ = s.open(func(label string) {
					if label == at {
						panic(crash{})
					}
				}).Decide(v, now, s)
			}()
			refuse := v
			refuse.Approve = false
			if at == "after verdict" || at == "after register" {
				if _, err := s.open(nil).Decide(refuse, now, s); !errors.Is(err, ErrApproved) {
					t.Errorf("%s: it is refused: %v", at, err)
				}
			}
			if again == "verdict" || at == "before verdict" {
				if _, err := s.open(nil).Decide(v, now, s); at != "after join" && err != nil {
					t.Errorf("%s: the same verdict: %v", at, err)
				}
			}
			if joined, err := s.open(nil).Join(secret, asks("h1", "K1"), "192.0.2.7", now, s); err != nil || joined.Waiting || s.keys["K1"] != "acme/h1" || s.registered != 1 {
				t.Errorf("%s, then %s: %+v, %v, and the keys are %v", at, again, joined, err, s.keys)
			}
		}
	}
}

// TestClockSetBack: a token with which somebody has asked after its end stays over when the clock
// of the site is set back, and so do the hosts that wait.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.addToken(Token{Host: "h*", MaxHosts: 3, Approve: true})
	if _, err := s.open(nil).Join(secret, asks("h1", "K1"), "192.0.2.7", now, s); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{now.Add(2 * time.Hour), now, now.Add(-time.Hour)} {
		if _, err := s.open(nil).Join(secret, asks("h2", "K2"), "192.0.2.7", at, s); !errors.Is(err, ErrExpired) {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if _, err := s.open(nil).Decide(Verdict{Tenant: "acme", Host: "h1", Key: "K1", Approve: true}, now, s); !errors.Is(err, ErrNotWaiting) {
		t.Errorf("a host that waited: %v", err)
	}
	all, err := s.open(nil).List()
	if err != nil || len(all) != 1 || all[0].ID != id || all[0].State(now) != "expired" {
		t.Errorf("it lists %+v, %v", all, err)
	}
}

// TestForgetOne: a withdrawn key of a token for several hosts does not come back, and the others
// can still join.
func TestForgetOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.addToken(Token{Host: "h*", MaxHosts: 3, Replace: true})
	crash := errors.New("crash")
	func() {
		defer func() { _ = recover() }()
		_, _ = s.open(func(label string) {
			if label == "after register" {
				panic(crash)
			}
		}).Join(secret, asks("h1", "K1"), "192.0.2.7", now, s)
	}()
	if err := s.open(nil).Forget("K1", "acme", "h1"); err != nil {
		t.Fatal(err)
	}
	delete(s.keys, "K1")
	for _, key := range []string{"K1", "K3"} {
		if _, err := s.open(nil).Join(secret, asks("h1", key), "192.0.2.7", now, s); !errors.Is(err, ErrWithdrawn) || len(s.keys) > 0 {
			t.Errorf("the withdrawn host with %s: %v, %v", key, err, s.keys)
		}
	}
	if _, err := s.open(nil).Join(secret, asks("h2", "K2"), "192.0.2.7", now, s); err != nil {
		t.Errorf("another host: %v", err)
	}
	// Its worker has rotated the key since.
	if err := s.open(nil).Forget("K4", "acme", "h2"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(nil).Join(secret, asks("h2", "K4"), "192.0.2.7", now, s); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("a withdrawn key that has replaced another: %v", err)
	}
	body, err := s.stored.Get(id)
	if err != nil || bytes.Contains(body, []byte(secret)) {
		t.Errorf("the secret is stored: %s, %v", body, err)
	}
}

// TestDamagedPlaces flips each bit of the file of a token for several hosts: it is then read as it
// was, or not at all.
func TestDamagedPlaces(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.addToken(Token{Host: "h*", MaxHosts: 2, Approve: true, Labels: map[string]string{"shop": "basel"}})
	if _, err := s.open(nil).Join(secret, asks("h1", "K1"), "192.0.2.7", now, s); err != nil {
		t.Fatal(err)
	}
	body, err := s.stored.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	tokens := s.open(nil)
	for at := range body {
		for bit := range 8 {
			damaged := bytes.Clone(body)
			damaged[at] ^= 1 << bit
			if err := credential.Put(&s.stored, id, damaged); err != nil {
				t.Fatal(err)
			}
			read, err := tokens.read(id)
			if err == nil && (read.MaxHosts != 2 || !read.Approve || read.Labels["shop"] != "basel" || !slices.Equal(read.Uses, []Use{{Host: "h1", Key: "K1", At: now, From: "192.0.2.7"}})) {
				t.Fatalf("%s is read as %+v", damaged, read)
			}
		}
	}
}

// TestRefusedHostsTakeNoPlace checks that made-up names which a person refuses do not use up a
// token, and that no more hosts join than it has places.
func TestRefusedHostsTakeNoPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, _ := s.addToken(Token{Host: "shop-*", MaxHosts: 2, Approve: true})
	tokens := s.open(nil)
	for _, host := range []string{"shop-x1", "shop-x2", "shop-x3"} {
		if _, err := tokens.Join(secret, asks(host, "K"+host), "", now, s); err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		if _, err := tokens.Decide(Verdict{Tenant: "acme", Host: host, Key: "K" + host, By: "ann"}, now, s); err != nil {
			t.Fatalf("%s is refused: %v", host, err)
		}
	}
	for _, host := range []string{"shop-1", "shop-2"} {
		if _, err := tokens.Join(secret, asks(host, "K"+host), "", now, s); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := tokens.Join(secret, asks("shop-3", "Kshop-3"), "", now, s); !errors.Is(err, ErrFull) {
		t.Errorf("a third host: %v", err)
	}
}
