package measure

import (
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// SyncedWrite reports how long this machine takes to append to a file in b.TempDir and to
// sync it: the floor of each record that is on disk before it is acted upon. make bench shows
// it beside the figures of the benchmark.
func SyncedWrite(b *testing.B, size int) {
	b.Helper()
	file, err := os.CreateTemp(b.TempDir(), "floor")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	body := make([]byte, size)
	report(b, "ns/synced-write", func() error {
		if _, err := file.Write(body); err != nil {
			return err
		}
		return file.Sync()
	})
}

// RoundTrip reports how long a request of some bytes and the answer to it take over the
// loopback interface: the floor of each call of the API. make bench shows it beside the
// figures of the benchmark.
func RoundTrip(b *testing.B, request, answer int) {
	b.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go serve(listener, request, answer)
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	asked, answered := make([]byte, request), make([]byte, answer)
	report(b, "ns/round-trip", func() error {
		if _, err := conn.Write(asked); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, answered)
		return err
	})
}

// serve answers the requests of one connection.
func serve(listener net.Listener, request, answer int) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	asked, answered := make([]byte, request), make([]byte, answer)
	for {
		if _, err := io.ReadFull(conn, asked); err != nil {
			return
		}
		if _, err := conn.Write(answered); err != nil {
			return
		}
	}
}

// report reports the mean time of an action.
func report(b *testing.B, unit string, act func() error) {
	b.Helper()
	times := Size(500)
	begun := time.Now()
	for range times {
		if err := act(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(begun).Nanoseconds())/float64(times), unit)
}
