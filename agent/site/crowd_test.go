package site

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestLimit checks that a listener has only so many connections at a time, and
// that one which waits for room can be closed.
func TestLimit(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 2)
	accepted, ended := make(chan net.Conn, 3), make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("there is room for a third")
	case <-time.After(50 * time.Millisecond):
	}
	for range 2 { // Whoever closes twice leaves once.
		_ = first.Close()
	}
	third := <-accepted
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
	_, _ = second.Close(), third.Close()
}
