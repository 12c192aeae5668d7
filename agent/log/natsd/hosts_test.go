package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
)

func newKey(t *testing.T) (key nkeys.KeyPair, public string) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return key, public
}

func (h *Hosts) publics(t *testing.T) []string {
	t.Helper()
	all, err := h.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, key := range all {
		names = append(names, key.Public)
	}
	slices.Sort(names)
	return names
}

func sorted(names ...string) []string { slices.Sort(names); return names }

// TestSecondKey checks when a host gets one more key: never unasked, never that of
// another host, and not without end.
func TestSecondKey(t *testing.T) {
	t.Parallel()
	hosts := NewHosts(&credentialtest.Memory{})
	h01, h02 := Identity{"acme", "h01"}, Identity{"acme", "h02"}
	var keys []string
	for range 6 {
		_, public := newKey(t)
		keys = append(keys, public)
	}
	for _, row := range []struct {
		name, public string
		id           Identity
		replace      bool
		want         error
	}{
		{"the first", keys[0], h01, false, nil},
		{"the same again", keys[0], h01, false, nil},
		{"the same again, to replace itself", keys[0], h01, true, nil},
		{"a second one", keys[1], h01, false, ErrSecondKey},
		{"the key of another host", keys[0], h02, true, ErrOthersKey},
		{"the key of the same host of another tenant", keys[0], Identity{"beta", "h01"}, true, ErrOthersKey},
		{"a second one that replaces the first", keys[1], h01, true, nil},
		{"a third", keys[2], h01, true, nil},
		{"a fourth", keys[3], h01, true, nil},
	} {
		before := hosts.publics(t)
		would, err := hosts.Registrable(row.public, row.id, row.replace), hosts.Register(row.public, row.id, row.replace)
		if !errors.Is(err, row.want) || !errors.Is(would, row.want) {
			t.Errorf("%s: %v, foretold as %v", row.name, err, would)
		}
		if err != nil && !slices.Equal(before, hosts.publics(t)) {
			t.Errorf("%s: it is refused, and kept", row.name)
		}
	}
	if err := hosts.Register(keys[4], h01, true); err == nil {
		t.Error("a host gets keys without end")
	}
	if err := hosts.Register("../../"+keys[5], h02, false); err == nil {
		t.Error("what is no key is registered")
	}
	if err := hosts.Register(keys[5], Identity{"acme", "a/b"}, false); err == nil {
		t.Error("a strange host gets a key")
	}
}

// meanwhile is a store with which something happens before it is changed.
type meanwhile struct {
	credential.Store
	happens func(name string)
}

func (m *meanwhile) Change(name string, change func([]byte) ([]byte, error)) error {
	if m.happens != nil {
		m.happens(name)
	}
	return m.Store.Change(name, change)
}

// TestWithdrawnWhileItReplaces checks that a key that is withdrawn while the host connects
// with it for the first time does not come back.
func TestWithdrawnWhileItReplaces(t *testing.T) {
	t.Parallel()
	kept := &credentialtest.Memory{}
	keys := &meanwhile{Store: kept}
	hosts, id := NewHosts(keys), Identity{"acme", "h01"}
	_, old := newKey(t)
	_, next := newKey(t)
	if err := errors.Join(hosts.Register(old, id, false), hosts.Register(next, id, true)); err != nil {
		t.Fatal(err)
	}
	keys.happens = func(name string) {
		if name == old {
			if err := credential.Remove(kept, next); err != nil {
				t.Error(err)
			}
		}
	}
	if err := hosts.used(next); err != nil {
		t.Error(err)
	}
	if left := hosts.publics(t); len(left) > 0 {
		t.Errorf("the site has the keys %v", left)
	}
}

// TestReplacedKey checks that a key lives until the host has connected with the one
// that replaces it, over a restart of the site, and takes no other host's key along.
func TestReplacedKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, hosts, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(key nkeys.KeyPair, public string) *nats.Conn {
		t.Helper()
		nc, err := nats.Connect("nats://"+s.Address(), nats.Nkey(public, key.Sign), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	old, oldPublic := newKey(t)
	_, other := newKey(t)
	next, nextPublic := newKey(t)
	id := Identity{"acme", "h01"}
	if err := errors.Join(hosts.Register(oldPublic, id, false), hosts.Register(other, Identity{"acme", "h02"}, false), hosts.Register(nextPublic, id, true)); err != nil {
		t.Fatal(err)
	}
	connected := connect(old, oldPublic)
	if got := hosts.publics(t); !slices.Equal(got, sorted(oldPublic, nextPublic, other)) {
		t.Fatalf("before the host has the new key the site has %v", got)
	}
	ended := make(chan struct{})
	connected.SetClosedHandler(func(*nats.Conn) { close(ended) })
	begun := time.Now()
	connect(next, nextPublic)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the old key keeps its connection")
	}
	// Invariant of the withdrawal: a connected host is out within a second.
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the old key has its connection for another %s", took)
	}
	if got := hosts.publics(t); !slices.Equal(got, sorted(nextPublic, other)) {
		t.Errorf("after it the site has %v", got)
	}
	// A crash after the first removal: the key still says what it replaces.
	body, err := encodeHost(nextPublic, hostFile{Identity: id, Replaces: []string{oldPublic, other}})
	if err == nil {
		err = credential.Put(hosts.keys, nextPublic, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	connect(next, nextPublic)
	if got := hosts.publics(t); !slices.Equal(got, sorted(nextPublic, other)) {
		t.Errorf("a key has replaced that of another host: the site has %v", got)
	}
}

// TestWithdrawnWithinASecond checks how long a connected host stays whose key is
// removed.
func TestWithdrawnWithinASecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, hosts, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		key, public := newKey(t)
		if err := hosts.Register(public, Identity{"acme", "h01"}, false); err != nil {
			t.Fatal(err)
		}
		nc, err := nats.Connect("nats://"+s.Address(), nats.Nkey(public, key.Sign), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		nc.SetClosedHandler(func(*nats.Conn) { close(ended) })
		time.Sleep(time.Duration(i) * 170 * time.Millisecond) // Not always at the same time of the watch.
		begun := time.Now()
		if err := hosts.Remove(public); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a key that was removed keeps its connection")
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it stays for %s", took)
		}
	}
}

// TestRotation asks for another key as hosts do, honest and not.
func TestRotation(t *testing.T) {
	t.Parallel()
	s, hosts, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g, victim := newGuest(t, hosts), newGuestAs(t, hosts, "h02")
	acme := log.Subjects{Tenant: "acme"}
	nc, err := g.connect(s, nats.CustomInboxPrefix(acme.Inbox("h01")))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ask := func(body []byte) (r hostkey.Rotated) {
		t.Helper()
		time.Sleep(time.Second) // One a second and host is answered.
		response, err := nc.Request(acme.Rotate("h01"), body, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(response.Data, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	request := func(key nkeys.KeyPair, public, host string) []byte {
		t.Helper()
		proof, err := hostkey.Prove(key, host)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(hostkey.Rotation{PublicKey: public, Proof: proof})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	victims, err := victim.key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	next, public := newKey(t)
	before := hosts.publics(t)
	for name, body := range map[string][]byte{
		"nothing":                       nil,
		"no JSON":                       []byte("key"),
		"much":                          make([]byte, 2*maxRotation),
		"no proof":                      []byte(`{"public-key":"` + public + `"}`),
		"a proof for another host":      request(next, public, "h02"),
		"a key that it does not have":   request(next, victims, "h01"),
		"a path":                        request(next, "../"+public, "h01"),
		"the key of another host, ours": request(victim.key, victims, "h01"),
	} {
		if r := ask(body); r.Error == "" || !slices.Equal(before, hosts.publics(t)) {
			t.Errorf("%s: it is answered %+v", name, r)
		}
	}
	for range 2 { // The answer may be lost.
		if r := ask(request(next, public, "h01")); r.Error != "" {
			t.Errorf("it is refused: %s", r.Error)
		}
	}
	if id, known, err := hosts.Find(public); err != nil || !known || id != (Identity{"acme", "h01"}) {
		t.Errorf("the new key is that of %v, %v, %v", id, known, err)
	}
	// A second request within a second is not answered: it would keep the server busy.
	time.Sleep(time.Second)
	_ = ask(request(next, public, "h01"))
	if _, err := nc.Request(acme.Rotate("h01"), nil, 200*time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("the next request at once: %v", err)
	}
	// In the name of another host it cannot ask at all.
	if _, err := nc.Request(acme.Rotate("h02"), request(next, public, "h02"), 200*time.Millisecond); err == nil {
		t.Error("a host asks in the name of another")
	}
}

// counted counts how often all keys are listed.
type counted struct {
	credential.Store
	lists int
}

func (c *counted) List() ([]credential.Entry, error) {
	c.lists++
	return c.Store.List()
}

// TestKeysAreListedOnce checks that a key more costs the same however many there are: the keys
// are listed for the first one only, and what is registered and removed after that is known.
func TestKeysAreListedOnce(t *testing.T) {
	t.Parallel()
	kept := &counted{Store: &credentialtest.Memory{}}
	hosts := NewHosts(kept)
	_, last := newKey(t)
	for i := range 50 {
		_, last = newKey(t)
		if err := hosts.Register(last, Identity{"acme", fmt.Sprintf("h%02d", i)}, false); err != nil {
			t.Fatal(err)
		}
	}
	h49 := Identity{"acme", "h49"}
	_, next := newKey(t)
	if err := hosts.Registrable(next, h49, false); !errors.Is(err, ErrSecondKey) {
		t.Errorf("a second key: %v", err)
	}
	if err := hosts.Remove(last); err != nil {
		t.Fatal(err)
	}
	if err := hosts.Register(next, h49, false); err != nil {
		t.Errorf("a key after the only one was removed: %v", err)
	}
	if kept.lists != 1 {
		t.Errorf("all keys were listed %d times; want once", kept.lists)
	}
}

// BenchmarkRegister registers a host where many are registered already.
func BenchmarkRegister(b *testing.B) {
	for _, registered := range measure.Sizes(100, 1_000, 10_000) {
		b.Run(fmt.Sprintf("%d-hosts", registered), func(b *testing.B) {
			hosts := NewHosts(&credentialtest.Memory{})
			add := func(name string) {
				if _, err := hosts.Add(Identity{"acme", name}); err != nil {
					b.Fatal(err)
				}
			}
			for i := range registered {
				add(fmt.Sprintf("h%05d", i))
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				add(fmt.Sprintf("new%d", n))
			}
		})
	}
}

// TestLabels checks which labels a host has that was given some when it joined: those of its newest
// key, also after a restart and after its key was replaced or withdrawn.
func TestLabels(t *testing.T) {
	t.Parallel()
	kept := &credentialtest.Memory{}
	hosts, h01, h02 := NewHosts(kept), Identity{"acme", "h01"}, Identity{"acme", "h02"}
	basel, bern := map[string]string{"shop": "basel"}, map[string]string{"shop": "bern"}
	has := func(when string, id Identity, want map[string]string) {
		t.Helper()
		for name, one := range map[string]*Hosts{"": hosts, " and a restart": NewHosts(kept)} {
			if got := one.Labels(id); !maps.Equal(got, want) {
				t.Errorf("%s%s: host %s has the labels %v, not %v", when, name, id.Host, got, want)
			}
		}
	}
	var keys [4]string
	for i := range keys {
		_, keys[i] = newKey(t)
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	has("without a key", h01, nil)
	must(hosts.RegisterLabelled(keys[0], h01, basel, false), hosts.Register(keys[3], h02, false))
	has("given", h01, basel)
	has("given none", h02, nil)
	must(hosts.RegisterLabelled(keys[3], h02, bern, false), hosts.Register(keys[3], h02, false))
	has("given some with the key that it has", h02, bern)
	must(hosts.Register(keys[1], h01, true))
	has("with a rotated key", h01, basel)
	must(hosts.used(keys[1]))
	has("connected with it", h01, basel)
	must(hosts.RegisterLabelled(keys[2], h01, bern, true))
	has("given others", h01, bern)
	must(hosts.Remove(keys[2]))
	has("without the newest key", h01, basel)
	must(hosts.Remove(keys[1]))
	has("withdrawn", h01, nil)
}

// TestAlike checks which names differ in nothing but case.
func TestAlike(t *testing.T) {
	t.Parallel()
	hosts := NewHosts(&credentialtest.Memory{})
	_, key := newKey(t)
	if err := hosts.Register(key, Identity{"acme", "Shop-1"}, false); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[Identity]string{
		{"acme", "shop-1"}: "Shop-1", {"acme", "SHOP-1"}: "Shop-1", {"acme", "Shop-1"}: "", {"acme", "shop-2"}: "", {"beta", "shop-1"}: "",
	} {
		if got, err := hosts.Alike(id); got != want || err != nil {
			t.Errorf("like %s of %s there is %q, %v", id.Host, id.Tenant, got, err)
		}
	}
}
