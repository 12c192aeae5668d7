package join

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// site is a site's tokens and keys, which survive a crash of the site.
type site struct {
	t      *testing.T
	stored credentialtest.Memory
	// keys are the hosts by their keys.
	keys map[string]string
	// registered counts the calls that had an effect.
	registered int
	refuse     error
	// meanwhile is called while the site looks whether a host may have a key.
	meanwhile func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{t: t, keys: map[string]string{}}
}

func (s *site) Registrable(string, Token, string) error {
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return s.refuse
}

func (s *site) Register(public string, t Token, host string) error {
	if _, known := s.keys[public]; !known {
		s.registered++
	}
	s.keys[public] = t.Tenant + "/" + host
	return nil
}

func (s *site) Registered(public, tenant, host string) (bool, error) {
	return s.keys[public] == tenant+"/"+host, nil
}

func (s *site) open(at func(string)) *Tokens {
	return NewTokens(&s.stored, at)
}

func (s *site) add(host string) (secret, id string) {
	s.t.Helper()
	return s.addToken(Token{Host: host})
}

// addToken makes a token of acme that is valid for an hour.
func (s *site) addToken(token Token) (secret, id string) {
	s.t.Helper()
	token.Tenant, token.Application, token.Expires = "acme", "appliance", now.Add(time.Hour)
	secret, id, err := s.open(nil).Add(token, now)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret, id
}

func asks(host, key string) v1.Join { return v1.Join{Host: host, PublicKey: key, Proof: "p"} }

// TestDecide checks each state of a token against each request.
func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		one = iota
		several
		replaces
		approves
	)
	tokens := map[int]Token{one: {MaxHosts: 1}, several: {MaxHosts: 2}, replaces: {MaxHosts: 2, Replace: true}, approves: {MaxHosts: 2, Approve: true}}
	used := Use{Host: "web-1", Key: "K1", At: now}
	registered, approved, refused := used, used, used
	registered.Registered, approved.Approved, refused.Refused = true, "ann", "ann"
	other := Use{Host: "web-2", Key: "K2", At: now, Registered: true}
	for name, c := range map[string]struct {
		token int
		uses  []Use
		r     v1.Join
		at    time.Duration
		do    next
		err   error
	}{
		"first":                            {one, nil, asks("web-1", "K1"), 0, take, nil},
		"in the last second":               {one, nil, asks("web-1", "K1"), time.Hour - 1, take, nil},
		"at its end":                       {one, nil, asks("web-1", "K1"), time.Hour, 0, ErrExpired},
		"another host":                     {one, nil, asks("db-1", "K1"), 0, 0, ErrHost},
		"a longer name":                    {one, nil, asks("my.web-1", "K1"), 0, 0, ErrHost},
		"again, before the registration":   {one, []Use{used}, asks("web-1", "K1"), 0, register, nil},
		"again, after it":                  {one, []Use{registered}, asks("web-1", "K1"), 0, tellAgain, nil},
		"again, too late":                  {one, []Use{registered}, asks("web-1", "K1"), time.Hour, 0, ErrExpired},
		"again, with another key":          {one, []Use{registered}, asks("web-1", "K2"), 0, 0, ErrUsed},
		"again, as another host":           {one, []Use{registered}, asks("web-2", "K1"), 0, 0, ErrKey},
		"another, before the registration": {one, []Use{used}, asks("web-1", "K2"), 0, 0, ErrUsed},

		"several: the second":                {several, []Use{registered}, asks("web-2", "K2"), 0, take, nil},
		"several: a third":                   {several, []Use{registered, other}, asks("web-3", "K3"), 0, 0, ErrFull},
		"several: the first when it is full": {several, []Use{registered, other}, asks("web-1", "K1"), 0, tellAgain, nil},
		"several: with another key":          {several, []Use{registered}, asks("web-1", "K2"), 0, 0, ErrName},
		"several: a name in another case":    {several, []Use{registered}, asks("Web-1", "K2"), 0, 0, ErrHost},
		"several: the key of another":        {several, []Use{registered}, asks("web-2", "K1"), 0, 0, ErrKey},
		"replaces: with another key":         {replaces, []Use{registered, other}, asks("web-1", "K3"), 0, take, nil},
		"replaces: the key of another":       {replaces, []Use{registered, other}, asks("web-1", "K2"), 0, 0, ErrKey},
		"approves: first":                    {approves, nil, asks("web-1", "K1"), 0, take, nil},
		"approves: again":                    {approves, []Use{used}, asks("web-1", "K1"), 0, wait, nil},
		"approves: with another key":         {approves, []Use{used}, asks("web-1", "K2"), 0, 0, ErrName},
		"approves: approved":                 {approves, []Use{approved}, asks("web-1", "K1"), 0, register, nil},
		"approves: joined":                   {approves, []Use{registered}, asks("web-1", "K1"), 0, tellAgain, nil},
		"approves: refused":                  {approves, []Use{refused}, asks("web-1", "K1"), 0, 0, ErrRefused},
		"approves: refused, another key":     {approves, []Use{refused}, asks("web-1", "K2"), 0, take, nil},
		"approves: those who wait take up":   {approves, []Use{used, other}, asks("web-3", "K3"), 0, 0, ErrFull},
	} {
		token := tokens[c.token]
		token.Tenant, token.Host, token.Application, token.Expires = "acme", "web-*", "a", now.Add(time.Hour)
		if do, err := decide(tokenFile{Token: token, Uses: c.uses}, c.r, now.Add(c.at)); do != c.do || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, do, err)
		}
	}
}

// TestCrashAnywhere ends the site at each action of a join. The host asks again and is
// let in with its one key; another joiner never is, whenever it comes.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	type crash struct{}
	labels := []string{}
	all := newSite(t)
	secret, _ := all.add("h01")
	if _, err := all.open(func(label string) { labels = append(labels, label) }).Join(secret, asks("h01", "K1"), "", now, all); err != nil {
		t.Fatal(err)
	}
	if len(labels) != 4 {
		t.Fatalf("a join has the actions %q", labels)
	}
	for _, at := range labels {
		s := newSite(t)
		secret, _ := s.add("h01")
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
			}).Join(secret, asks("h01", "K1"), "192.0.2.7", now, s)
		}()
		usedUp := at != "before use"
		if !usedUp && len(s.keys) > 0 {
			t.Errorf("%s: a key is let in by a token that is not used up", at)
		}
		if usedUp {
			if _, err := s.open(nil).Join(secret, asks("h01", "K2"), "192.0.2.7", now, s); !errors.Is(err, ErrUsed) {
				t.Errorf("%s: a second joiner: %v", at, err)
			}
		}
		for range 2 {
			token, err := s.open(nil).Join(secret, asks("h01", "K1"), "192.0.2.7", now.Add(time.Minute), s)
			if err != nil || token.Application != "appliance" {
				t.Errorf("%s: the same host again: %+v, %v", at, token, err)
			}
		}
		if s.registered != 1 || len(s.keys) != 1 || s.keys["K1"] != "acme/h01" {
			t.Errorf("%s: the site has the keys %v, %d registered", at, s.keys, s.registered)
		}
	}
}

// TestRefusedUsesNothing checks that a refusal does not use up the token, and that a
// key that was withdrawn does not come back.
func TestRefusedUsesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret, id := s.add("*")
	s.refuse = errors.New("it has a key already")
	if _, err := s.open(nil).Join(secret, asks("h01", "K1"), "192.0.2.7", now, s); !errors.Is(err, s.refuse) {
		t.Errorf("a key that the site refuses: %v", err)
	}
	s.refuse = nil
	if _, err := s.open(nil).Join(secret, asks("h02", "K1"), "192.0.2.7", now, s); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	delete(s.keys, "K1")
	if _, err := s.open(nil).Join(secret, asks("h02", "K1"), "192.0.2.7", now, s); !errors.Is(err, ErrWithdrawn) || len(s.keys) > 0 {
		t.Errorf("after its key was withdrawn: %v, %v", err, s.keys)
	}
	if err := s.open(nil).Forget("K1", "acme", "h02"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(nil).Join(secret, asks("h02", "K1"), "192.0.2.7", now, s); !errors.Is(err, ErrUnknown) {
		t.Errorf("after it was forgotten: %v", err)
	}
	if err := s.open(nil).Remove(id); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the token is there after it was forgotten: %v", err)
	}
}

// TestMeanwhile checks that a token that is removed or used while a host joins with it lets
// that host in no more, and stays as it is.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(s *site, secret, id string) error
		want   error
		left   int
	}{
		"removed": {func(s *site, _, id string) error { return s.open(nil).Remove(id) }, ErrUnknown, 0},
		"used by another": {func(s *site, secret, _ string) error {
			_, err := s.open(nil).Join(secret, asks("h02", "K2"), "192.0.2.7", now, &site{keys: map[string]string{}})
			return err
		}, ErrUsed, 1},
	} {
		s := newSite(t)
		secret, id := s.add("*")
		s.meanwhile = func() {
			if err := row.change(s, secret, id); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.open(nil).Join(secret, asks("h01", "K1"), "192.0.2.7", now, s); !errors.Is(err, row.want) || len(s.keys) > 0 {
			t.Errorf("%s: %v, and the keys are %v", name, err, s.keys)
		}
		if all, err := s.open(nil).List(); err != nil || len(all) != row.left || row.left > 0 && (len(all[0].Uses) != 1 || all[0].Uses[0].Key != "K2") {
			t.Errorf("%s: the tokens are %+v, %v", name, all, err)
		}
	}
}

// TestDamagedToken flips each bit of a used and an unused token's file: no other
// host, key or tenant is let in.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	for _, used := range []bool{false, true} {
		s := newSite(t)
		secret, id := s.add("h01")
		if used {
			if _, err := s.open(nil).Join(secret, asks("h01", "K1"), "192.0.2.7", now, s); err != nil {
				t.Fatal(err)
			}
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
				if read, err := tokens.read(id); err == nil && (read.Tenant != "acme" || read.Host != "h01" || len(read.Uses) > 0 != used) {
					t.Fatalf("%s is read as %+v", damaged, read)
				}
			}
		}
	}
}

// TestParse checks what is a token, and that what is none is not repeated.
func TestParse(t *testing.T) {
	t.Parallel()
	secret := "osuj_" + strings.Repeat("0a", 24)
	pin := strings.Repeat("0b", 32)
	for text, want := range map[string][2]string{
		secret: {secret, ""}, secret + "_" + pin: {secret, pin}, " " + secret + "\n": {secret, ""},
	} {
		if got, fingerprint, err := Parse(text); err != nil || got != want[0] || fingerprint != want[1] {
			t.Errorf("%q is %q, %q, %v", text, got, fingerprint, err)
		}
	}
	for _, text := range []string{
		"", "osuj_", "osu_" + strings.Repeat("0a", 24), secret[:30], secret + "0a", secret + "_", secret + "_" + pin[2:], secret + "_" + pin + "_" + pin,
		strings.ToUpper(secret), secret + " " + secret, strings.Repeat("x", 1<<20),
	} {
		if _, _, err := Parse(text); err == nil || len(text) > 6 && strings.Contains(err.Error(), text[6:]) {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

// TestMakeRoom checks that tokens that expired long ago go, and others stay.
func TestMakeRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, old := s.add("h01")
	later := now.Add(time.Hour + keepExpired + time.Second)
	if _, _, err := s.open(nil).Add(Token{Tenant: "acme", Host: "h02", Application: "a", Expires: later.Add(time.Hour)}, later); err != nil {
		t.Fatal(err)
	}
	all, err := s.open(nil).List()
	if err != nil || len(all) != 1 || all[0].ID == old || all[0].State(later) != "open" || all[0].State(later.Add(time.Hour)) != "expired" {
		t.Errorf("it lists %+v, %v", all, err)
	}
}

// TestFormat holds the file of a token against the fixture of format 1, and reads
// it.
func TestFormat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const id = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	file := tokenFile{
		Token: Token{
			Tenant: "acme", Host: "web-*", Application: "appliance", Expires: now.Add(time.Hour), MaxHosts: 40, Labels: map[string]string{"shop": "basel"}, Approve: true,
			Replace: true, By: "ann",
		},
		Uses: []Use{
			{Host: "web-1", Key: "UCKP7GWOONUEZU3A7VS5ZIN7BMNB4OJVCM6KWR4RH4WNAY6FU7FEDCBI", At: now, From: "192.0.2.7", Approved: "ann", Registered: true},
			{Host: "web-2", Key: "UDXB2AVAZWXNEYKC5PGLA5JQTKAZ6RZH5KXQN4UGRNS4BHXLFCTCVGLB", At: now, From: "192.0.2.8", Refused: "bob"},
		},
		Ended: true,
	}
	file.Sum = file.sum(id)
	body, err := format.JoinToken.Encode(file)
	if err != nil {
		t.Fatal(err)
	}
	body = formattest.Golden(t, "testdata/format1/token.json", append(body, '\n'))
	if err := credential.Put(&s.stored, id, body); err != nil {
		t.Fatal(err)
	}
	if read, err := s.open(nil).read(id); err != nil || !reflect.DeepEqual(read, file) {
		t.Errorf("it is read as %+v, %v", read, err)
	}
}
