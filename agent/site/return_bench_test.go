package site

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
)

// BenchmarkReturn is a site that is killed and started again while its hosts are
// connected, each with a key of its own and over TLS: how long until all of them
// are back. They are on the same machine, so that half of the work of the
// handshakes is theirs.
func BenchmarkReturn(b *testing.B) {
	for _, hosts := range sizes() {
		b.Run(strconv.Itoa(hosts)+"-hosts", func(b *testing.B) { returns(b, hosts) })
	}
}

func returns(b *testing.B, hosts int) {
	dir := b.TempDir()
	cert, key := certificates(b)
	bin := filepath.Join(dir, "osupgrade-agent")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "..").CombinedOutput(); err != nil {
		b.Fatalf("cannot build: %v\n%s", err, out)
	}
	address := freeAddress(b)
	serve := func() (kill func()) {
		ctx, cancel := context.WithCancel(b.Context())
		cmd := exec.CommandContext(ctx, bin, "serve", "--data", dir, "--tenants", benchTenant, "--listen", "127.0.0.1:0", "--log-level", "error",
			"--nats-listen", address, "--nats-tls-cert", cert, "--nats-tls-key", key)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		return func() {
			cancel()
			_ = cmd.Wait()
		}
	}
	keys := benchKeys(b, dir, benchNames(hosts))
	kill := serve()
	var back atomic.Int64
	all := make(chan struct{}, 1)
	came := func(*nats.Conn) {
		if back.Add(1) == int64(hosts) {
			all <- struct{}{}
		}
	}
	var begun time.Time
	for _, key := range keys {
		b.Cleanup(guest(b, address, cert, key, came).Close)
	}
	<-all
	for b.Loop() {
		back.Store(0)
		kill()
		kill = serve()
		begun = time.Now()
		<-all
	}
	b.ReportMetric(time.Since(begun).Seconds(), "s-back")
	b.ReportMetric(0, "ns/op")
	kill()
}

// guest is a host that connects as a worker does.
func guest(b *testing.B, address, ca string, key nkeys.KeyPair, came nats.ConnHandler) *nats.Conn {
	b.Helper()
	public, err := key.PublicKey()
	if err != nil {
		b.Fatal(err)
	}
	nc, err := nats.Connect("tls://"+address, append(jetstream.RetryOptions(), nats.Nkey(public, key.Sign), nats.RootCAs(ca),
		nats.RetryOnFailedConnect(true), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ConnectHandler(came), nats.ReconnectHandler(came), nats.PingInterval(jetstream.PingInterval))...)
	if err != nil {
		b.Fatal(err)
	}
	return nc
}
