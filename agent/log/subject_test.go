package log

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestTokens checks that any legal host name is one subject token, that no two
// share one, and that reading one gives the name back.
func TestTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,30}[A-Za-z0-9])?`).Draw(rt, "name")
		token := Token(name)
		if strings.ContainsAny(token, ".*> ") {
			rt.Fatalf("%q becomes %q, which is no single token", name, token)
		}
		if back, ok := Host(token); !ok || back != name {
			rt.Fatalf("%q becomes %q and then %q", name, token, back)
		}
	})
}

// TestForeignTokens checks that a token which Token never makes names no host:
// otherwise one host could have two subjects.
func TestForeignTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "=", "=6", "=zz", "=61", "=2E", "h=2", "a.b", "h 1"} {
		if host, ok := Host(token); ok {
			t.Errorf("%q is taken for host %q", token, host)
		}
	}
}

// TestParse checks that each subject is read as what it was made for.
func TestParse(t *testing.T) {
	t.Parallel()
	s := Subjects{Tenant: "acme"}
	for subject, want := range map[string]message.Record{
		s.CommandAll():                           {Kind: message.CommandAll},
		s.Prepare(""):                            {Kind: message.CommandAll},
		s.Prepare("bern-2"):                      {Kind: message.CommandAll, Environment: "bern-2"},
		s.Event():                                {Kind: message.EventRecord},
		s.CommandHost():                          {Kind: message.CommandHost},
		s.Reply(41, message.Upgrade, "h01.site"): {Kind: message.ReplyRecord, Run: 41, Action: message.Upgrade, Host: "h01.site"},
	} {
		got, err := s.Parse(subject)
		if err != nil || got.Kind != want.Kind || got.Host != want.Host || got.Run != want.Run || got.Action != want.Action || got.Environment != want.Environment {
			t.Errorf("%s is read as %+v, %v", subject, got, err)
		}
	}
	for _, subject := range []string{
		"", "osu.acme", "osu.other.cmd.all", "osu.acme.cmd", "osu.acme.cmd.host.h01", "osu.acme.cmd.host.a.b", "osu.acme.cmd.all.a.b", "osu.acme.cmd.all.", "osu.acme.cmd.all.=61",
		"osu.acme.reply.x.upgrade.h01", "osu.acme.reply.1.upgrade", "osu.acme.reply.-1.upgrade.h01", "osu.acme.versions.h01", "osu-in.acme.h01.call.newest",
	} {
		if r, err := s.Parse(subject); err == nil {
			t.Errorf("%q is read as %+v", subject, r)
		}
	}
}

// FuzzParse checks that no subject makes Parse panic or yields a host that is
// not the one of the subject.
func FuzzParse(f *testing.F) {
	f.Add("osu.acme.reply.41.upgrade.h01")
	f.Add("osu.acme.cmd.host.h=2e1")
	f.Add("osu.acme.cmd.all.bern-2")
	f.Fuzz(func(t *testing.T, subject string) {
		r, err := Subjects{Tenant: "acme"}.Parse(subject)
		if err == nil && r.Host != "" && !strings.HasSuffix(subject, "."+Token(r.Host)) {
			t.Errorf("%q is read as of host %q", subject, r.Host)
		}
	})
}
