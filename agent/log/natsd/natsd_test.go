package natsd

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func open(t *testing.T, dir string) (*Server, *Hosts, error) {
	t.Helper()
	keys, err := credential.OpenFolder(filepath.Join(dir, "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	hosts := NewHosts(keys)
	s, err := Start(t.Context(), Options{
		Dir: filepath.Join(dir, "store"), Listen: "127.0.0.1:0", Hosts: hosts, Holder: "osupgrade-agent test", Log: slog.New(slog.DiscardHandler),
	})
	if s != nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, hosts, err
}

// TestStoreInUse checks that a second server on a store is refused and told
// who is there: NATS itself lets both in and loses what they write.
func TestStoreInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = open(t, dir)
	if err == nil || !strings.Contains(err.Error(), "osupgrade-agent test") {
		t.Fatalf("the second server got the error %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err = open(t, dir); err != nil {
		t.Fatalf("after the first is closed the second gets %v", err)
	}
}

// TestStoreNotWritable checks that a server that cannot write says so at once
// instead of pretending to run.
func TestStoreNotWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, dir); err == nil {
		t.Fatal("it starts on a store folder that is a file")
	}
}

// TestStrangers checks that nobody connects without a key that is known and
// proven.
func TestStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, hosts, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://" + s.Address()
	seed, err := hosts.Add(Identity{Tenant: "acme", Host: "h01"})
	if err != nil {
		t.Fatal(err)
	}
	known, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := known.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	strange, err := stranger.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]nats.Option{
		"no key":                    nats.Name("nobody"),
		"a password":                nats.UserInfo("agent", "agent"),
		"an unknown key":            nats.Nkey(strange, stranger.Sign),
		"a known key, not its seed": nats.Nkey(public, stranger.Sign),
	} {
		if nc, err := nats.Connect(url, option); err == nil {
			nc.Close()
			t.Errorf("%s is let in", name)
		}
	}
	nc, err := nats.Connect(url, nats.Nkey(public, known.Sign), nats.NoReconnect())
	if err != nil {
		t.Fatalf("a host with its key is not let in: %v", err)
	}
	defer nc.Close()
	ended := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(ended) })
	// Its removal ends the right to connect without a restart, and soon the connection that
	// is there.
	if err := hosts.Remove(public); err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(url, nats.Nkey(public, known.Sign)); err == nil {
		nc.Close()
		t.Error("a key that was removed is let in")
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a key that was removed keeps its connection")
	}
}

// TestRefusedForItsKey checks that of a worker which is refused for its key, or has
// the key of another host, the agent is told who it says it is and what to do; and
// nothing of who names no host.
func TestRefusedForItsKey(t *testing.T) {
	t.Parallel()
	var n notebook
	dir := t.TempDir()
	hosts := NewHosts(&credentialtest.Memory{})
	told := make(chan string, 100)
	waits, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := waits.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{
		Dir: filepath.Join(dir, "store"), Listen: "127.0.0.1:0", Hosts: hosts, Holder: "test", Log: n.log(),
		Waits: func(public string) bool { return public == waiting },
		Refused: func(tenant, host string, kind message.WarningKind, why string) {
			told <- fmt.Sprintf("%s/%s %s: %s", tenant, host, kind, why)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	g := newGuest(t, hosts)
	own, err := g.key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	strange, err := stranger.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, key string
		sign      nats.SignatureHandler
		want      string
	}{
		{"acme/h09", strange, stranger.Sign, "acme/h09 key-refused: a worker at 127.0.0.1 says that it is this host, and no host has its key: " +
			"if it is yours, make a key with osupgrade-agent credentials host --tenant acme --host h09"},
		{"acme/h02", own, g.key.Sign, "acme/h02 key-refused: a worker at 127.0.0.1 says that it is this host, and has the key of host h01 of tenant acme: give it the key of its own"},
		{"acme/h01", own, g.key.Sign, ""},
		{"acme/h03", waiting, waits.Sign, ""},
		{"somebody", strange, stranger.Sign, ""},
		{"acme/h 1", strange, stranger.Sign, ""},
		{"acme/" + strings.Repeat("h", 1000), strange, stranger.Sign, ""},
	} {
		nc, err := nats.Connect("nats://"+s.Address(), nats.Name(c.name), nats.Nkey(c.key, c.sign), nats.NoReconnect())
		if err == nil {
			nc.Close()
		}
		got := ""
		if len(told) > 0 {
			got = <-told
		}
		if got != c.want {
			t.Errorf("of %.20q the agent is told\n%q, not\n%q", c.name, got, c.want)
		}
	}
	logged := strings.Join(n.lines(), "\n")
	if !strings.Contains(logged, "connection refused: no host has this key") || strings.Contains(logged, "<nil>") {
		t.Errorf("logged is\n%s", logged)
	}
	var open []*nats.Conn
	for range maxPerKey + 1 {
		if nc, err := g.connect(s); err == nil {
			open = append(open, nc)
		}
	}
	for _, nc := range open {
		nc.Close()
	}
	if got := <-told; !strings.HasPrefix(got, "acme/h01 clone: its key has too many connections") {
		t.Errorf("of a key on many machines the agent is told %q", got)
	}
}

// TestRoles checks what a server is told of its peers.
func TestRoles(t *testing.T) {
	t.Parallel()
	member := Options{Name: "a", Role: Member, Peers: []string{"b:6222", "c:6222"}, Cluster: "10.0.0.1:6222"}
	got, err := options(member, nil)
	if err != nil || got.ServerName != "a" || got.Cluster.Name == "" || got.Cluster.Host != "10.0.0.1" || got.Cluster.Port != 6222 || len(got.Routes) != 2 || got.Routes[1].Host != "c:6222" || !got.SyncAlways {
		t.Errorf("a member gets %+v, %v", got, err)
	}
	if got, err := options(Options{}, nil); err != nil || got.ServerName != "osupgrade-agent" || got.Cluster.Name != "" || len(got.Routes) > 0 {
		t.Errorf("a single server gets %+v, %v", got, err)
	}
	for want, wrong := range map[string]Options{
		"a single server has no peers":  {Peers: member.Peers},
		"a name of its own and peers":   {Role: Member, Peers: member.Peers, Cluster: member.Cluster},
		"cluster \"\" is not host:port": {Role: Member, Name: "a", Peers: member.Peers},
	} {
		if _, err := options(wrong, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, not one with %q", err, want)
		}
	}
}
