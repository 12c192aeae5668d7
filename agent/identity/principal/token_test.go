package principal

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func openTokens() (*Tokens, *kept) {
	k := &kept{}
	return NewTokens(&k.tokens, &k.beside), k
}

func add(t *testing.T, tokens *Tokens, token Token) string {
	t.Helper()
	text, err := tokens.Add(token)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRotate checks that the new token is as the old one, and that the old one ends when it
// should, and no later than it would have.
func TestRotate(t *testing.T) {
	t.Parallel()
	soon, late := noon.Add(time.Minute), noon.Add(48*time.Hour)
	for name, row := range map[string]struct {
		expires *time.Time
		overlap time.Duration
		// good and ended are when the old token still is good, and when it is not any more.
		good, ended time.Time
		cause       error
	}{
		"at once":                      {nil, 0, time.Time{}, noon, ErrUnknownToken},
		"with an overlap":              {nil, time.Hour, noon.Add(59 * time.Minute), noon.Add(time.Hour), ErrExpiredToken},
		"with an overlap, before late": {&late, time.Hour, noon.Add(59 * time.Minute), noon.Add(time.Hour), ErrExpiredToken},
		"with an overlap, after soon":  {&soon, time.Hour, noon, soon, ErrExpiredToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens, _ := openTokens()
			old := add(t, tokens, Token{Name: "ci", Tenant: "acme", Allow: []access.Role{access.Operator}, Expires: row.expires})
			next, err := tokens.Rotate(ID(old), row.overlap, noon)
			if err != nil || next == old {
				t.Fatalf("it is rotated to %q, %v", next, err)
			}
			if got, err := tokens.Find(next, noon); err != nil || got.Name != "ci" || got.Tenant != "acme" || got.Allow[0] != access.Operator || (got.Expires == nil) != (row.expires == nil) {
				t.Errorf("the new token is %+v, %v", got, err)
			}
			if _, err := tokens.Find(old, row.good); err != nil && !row.good.IsZero() {
				t.Errorf("the old token at %s: %v", row.good, err)
			}
			if _, err := tokens.Find(old, row.ended); !errors.Is(err, row.cause) {
				t.Errorf("the old token at %s: %v", row.ended, err)
			}
		})
	}
	tokens, _ := openTokens()
	if _, err := tokens.Rotate("0123", 0, noon); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a token that there is not: %v", err)
	}
	if _, err := tokens.Rotate(ID(add(t, tokens, Token{Name: "x", Tenant: "acme", Expires: &soon})), 0, soon); !errors.Is(err, ErrExpiredToken) {
		t.Errorf("an expired token: %v", err)
	}
}

// TestRotateAndRemove checks that a token that is withdrawn while it is rotated stays
// withdrawn: either the rotation came first, or there is no successor.
func TestRotateAndRemove(t *testing.T) {
	t.Parallel()
	tokens, _ := openTokens()
	for range 50 {
		old := add(t, tokens, Token{Name: "ci", Tenant: "acme"})
		var next string
		var failed error
		var both sync.WaitGroup
		both.Go(func() { next, failed = tokens.Rotate(ID(old), time.Hour, noon) })
		both.Go(func() {
			if err := tokens.Remove(ID(old)); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if _, err := tokens.Find(old, noon); !errors.Is(err, ErrUnknownToken) {
			t.Fatalf("the withdrawn token is back: %v", err)
		}
		all, err := tokens.List()
		if err != nil || failed == nil && len(all) != 1 || failed != nil && (len(all) != 0 || !errors.Is(failed, os.ErrNotExist)) {
			t.Fatalf("there are %d tokens after %v, %v", len(all), failed, err)
		}
		if failed == nil {
			if err := tokens.Remove(ID(next)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLastUse checks that the last use of a token is known to the minute, also after the
// site was stopped, and that nothing is kept of a token that is gone.
func TestLastUse(t *testing.T) {
	t.Parallel()
	tokens, k := openTokens()
	kept, gone, idle := add(t, tokens, Token{Name: "kept", Tenant: "acme"}), add(t, tokens, Token{Name: "gone", Tenant: "acme"}), add(t, tokens, Token{Name: "idle", Tenant: "acme"})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			tokens.uses.keep(ctx, slog.New(slog.DiscardHandler), func(id string) bool { return id != ID(gone) })
		}()
		time.Sleep(90 * time.Second)
		for _, text := range []string{kept, gone} {
			if _, err := tokens.Find(text, noon.Add(59*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		if body, err := k.beside.Get(useName); err == nil {
			t.Errorf("it is written at each use: %s", body)
		}
		time.Sleep(time.Minute)
		if body, err := k.beside.Get(useName); err != nil || !bytes.Contains(body, []byte(ID(kept))) {
			t.Errorf("it is not written within the minute: %s, %v", body, err)
		}
		if _, err := tokens.Find(kept, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		stop()
		<-ended
	})
	all, err := NewTokens(&k.tokens, &k.beside).List()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Time{ID(kept): noon.Add(time.Hour), ID(gone): {}, ID(idle): {}}
	for _, token := range all {
		if at, known := want[token.Key]; !known || !token.Value.Used.Equal(at) {
			t.Errorf("%s was last used at %s", token.Value.Name, token.Value.Used)
		}
	}
}

// TestUseFormat checks that the file with the last uses is as it was, that a damaged one
// stands in nobody's way, and that one of a newer version is not overwritten.
func TestUseFormat(t *testing.T) {
	t.Parallel()
	u := &uses{stored: &credentialtest.Memory{}}
	u.note("0a1b", noon)
	if err := u.write(func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	body, err := u.stored.Get(useName)
	if err != nil {
		t.Fatal(err)
	}
	body = formattest.Golden(t, "testdata/format1/used.json", body)
	for _, row := range []struct {
		body        []byte
		uses        int
		unsupported bool
	}{
		{body, 1, false},
		{body[:len(body)/2], 0, false},
		{[]byte(`{"format":1}`), 0, false},
		{bytes.Replace(body, []byte(`"format":1`), []byte(`"format":2`), 1), 0, true},
	} {
		if err := credential.Put(u.stored, useName, row.body); err != nil {
			t.Fatal(err)
		}
		got, err := u.all()
		if len(got) != row.uses || format.IsUnsupported(err) != row.unsupported {
			t.Errorf("%s is read as %v, %v", row.body, got, err)
		}
		u.note("2c3d", noon)
		if err := u.write(func(string) bool { return true }); format.IsUnsupported(err) != row.unsupported {
			t.Errorf("%s is overwritten: %v", row.body, err)
		}
		u.latest = nil
	}
}

// TestCheck checks that a token has a name that can be shown, and roles that there are.
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, token := range map[string]Token{
		"":                                    {Name: "ann", Allow: []access.Role{access.Viewer, access.Approver}},
		"name: \"\" is invalid":               {},
		`allow: "Root" is the name of neithe`: {Name: "ann", Allow: []access.Role{access.Viewer, "Root"}},
		`name: "a\nb" is invalid; use 1 to`:   {Name: "a\nb"},
	} {
		if err := token.Check(); (err == nil) != (text == "") || err != nil && !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%+v: %v", token, err)
		}
	}
}
