package api_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// damage replaces an object of a real site with an unreadable value.
func damage(t *testing.T, s *site.Site, bucket, key string) {
	t.Helper()
	nc, err := s.Server().Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), key, []byte(`{"worker-`)); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedObject checks that an unreadable object is reported, and that it can be
// replaced or deleted, as the error says.
func TestDamagedObject(t *testing.T) {
	t.Parallel()
	s, err := site.Open(t.Context(), site.Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), Tenants: []string{"demo"}, API: site.Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := s.Tokens.Add(principal.Token{Name: "test", Tenant: "demo", Allow: access.Rights()})
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, dev: &dev.Dev{Endpoint: "http://" + s.Address(), Token: token}}
	calendar := configPath + "/calendars/freeze"
	for _, o := range []struct{ path, bucket, key, body string }{
		{configPath, "osu-intent", "demo._.config", body},
		{configPath + "/rollout", "osu-intent", "demo._.rollout", `{}`},
		{calendar, "osu-intent", "demo._.calendar.freeze", `{"kind":"freeze","events":[{"start":"2026-12-24","duration":"2d","all-day":true,"summary":"Christmas"}]}`},
	} {
		damage(t, s, o.bucket, o.key)
		told := c.want(c.call("GET", o.path, ""), 500, "is damaged")
		c.want(told, 500, "replace it with PUT, or delete it")
		c.want(c.call("PATCH", o.path, `{}`), 500, "is damaged")
		c.want(c.call("PUT", o.path, o.body, "If-None-Match", "*"), 412, "has ETag")
		c.want(c.call("PUT", o.path, o.body), 204, "")
		c.want(c.call("GET", o.path, ""), 200, "")
		damage(t, s, o.bucket, o.key)
		// The site sees a moment later what another process writes.
		for c.call("GET", o.path, "").status != 500 {
			time.Sleep(time.Millisecond)
		}
		c.want(c.call("DELETE", o.path, ""), 204, "")
		c.want(c.call("GET", o.path, ""), 404, "")
	}
}
