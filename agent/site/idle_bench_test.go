package site

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// BenchmarkIdle is osupgrade-agent serve with hosts that are connected, each
// over TCP with a key of its own, and say that they are alive: the share of one
// core that the site uses, and its memory.
func BenchmarkIdle(b *testing.B) {
	for _, hosts := range sizes() {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) { idle(b, hosts) })
	}
}

func idle(b *testing.B, hosts int) {
	dir := b.TempDir()
	keys := benchKeys(b, dir, benchNames(hosts))
	address, pid := serveBench(b, dir)
	for name, key := range keys {
		live(b, address, name, key)
	}
	time.Sleep(measure.Span(message.Heartbeat)) // What a start does is not idleness.
	before, err := measure.Ticks(pid)
	if err != nil {
		b.Fatal(err)
	}
	idle := measure.Span(2 * message.Heartbeat)
	time.Sleep(idle)
	after, err := measure.Ticks(pid)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // The figures below are all that counts.
	}
	b.ReportMetric(float64(after-before)/idle.Seconds(), "%-of-a-core")
	b.ReportMetric(0, "ns/op")
	reportMemory(b, strconv.Itoa(pid))
}

// benchKeys makes a key for each host.
func benchKeys(b *testing.B, dir string, names []string) map[string]nkeys.KeyPair {
	b.Helper()
	hosts, err := openHosts(dir)
	if err != nil {
		b.Fatal(err)
	}
	keys := map[string]nkeys.KeyPair{}
	for _, name := range names {
		seed, err := hosts.Add(natsd.Identity{Tenant: benchTenant, Host: name})
		if err != nil {
			b.Fatal(err)
		}
		if keys[name], err = nkeys.FromSeed(seed); err != nil {
			b.Fatal(err)
		}
	}
	return keys
}

// serveBench runs a site as a process of its own.
func serveBench(b *testing.B, dir string) (address string, pid int) {
	b.Helper()
	bin := filepath.Join(dir, "osupgrade-agent")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "..").CombinedOutput(); err != nil {
		b.Fatalf("cannot build: %v\n%s", err, out)
	}
	address = freeAddress(b)
	cmd := exec.CommandContext(b.Context(), bin, "serve", "--data", dir, "--tenants", benchTenant, "--listen", "127.0.0.1:0", "--nats-listen", address, "--log-level", "error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return address, cmd.Process.Pid
}

// freeAddress is one of loopback that nobody listens on.
func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := Endpoint{Listen: "127.0.0.1:0"}.listen(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// live connects a host, which says that it is alive until the benchmark ends.
func live(b *testing.B, address, name string, key nkeys.KeyPair) {
	b.Helper()
	public, err := key.PublicKey()
	if err != nil {
		b.Fatal(err)
	}
	var nc *nats.Conn
	for try := 0; ; try++ {
		nc, err = nats.Connect("nats://"+address, nats.Nkey(public, key.Sign), nats.Timeout(10*time.Second), nats.ReconnectBufSize(-1), nats.PingInterval(jetstream.PingInterval))
		if err == nil {
			break
		}
		if try == 100 {
			b.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Cleanup(nc.Close)
	subjects := log.Subjects{Tenant: benchTenant}
	for _, subject := range []string{subjects.PushAll(), subjects.Ping(), subjects.Push(name), subjects.Task(name)} {
		if _, err := nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			b.Fatal(err)
		}
	}
	alive := message.Alive{Application: benchApplication, Protocol: format.Protocol}.Encode()
	var beat func()
	beat = func() {
		if nc.IsClosed() {
			return
		}
		if err := nc.Publish(subjects.Alive(name), alive); err != nil {
			slog.Error("cannot beat", "error", err)
		}
		time.AfterFunc(message.UntilBeat(time.Now()), beat)
	}
	beat()
}
