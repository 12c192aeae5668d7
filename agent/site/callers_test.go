package site

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// served is a server for some callers. A request for /follow is answered bit by bit until
// the client goes.
type served struct {
	t       *testing.T
	address string
	callers *callers
}

func serveCallers(t *testing.T, most int) *served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, address: listener.Addr().String(), callers: newCallers(most)}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ConnState: s.callers.follow, ConnContext: connect, Handler: s.callers.answering(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/follow" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			_, _ = io.Copy(w, r.Body)
		}))}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return s
}

// dial opens a connection and sends a text on it.
func (s *served) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, text) // It may be closed already.
	return conn
}

// ask sends a whole request on a new connection and returns the answer.
func (s *served) ask() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.address+"/", strings.NewReader("hello"))
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// TestSilentCallersGiveWay checks that connections that send nothing, or a part of a
// request, are closed when there are too many, that who asks is answered meanwhile, and that
// an answer under way goes on.
func TestSilentCallersGiveWay(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":          "",
		"half a header":    "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"half a body":      "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf",
		"a body in chunks": "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"an old request":   "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 20
			s := serveCallers(t, most)
			follower := s.dial("GET /follow HTTP/1.1\r\nHost: x\r\n\r\n")
			if line, err := bufio.NewReader(follower).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				t.Fatalf("a follower is answered %q, %v", line, err)
			}
			for range 5 * most {
				s.dial(text)
			}
			for range 3 {
				if got := s.ask(); got != "hello" {
					t.Errorf("beside %d silent callers, one is answered %q", 5*most, got)
				}
			}
			s.callers.mu.Lock()
			open, silent := len(s.callers.all), s.callers.silent.Len()
			s.callers.mu.Unlock()
			if open > most || silent > open {
				t.Errorf("%d connections are known, %d of them silent; want at most %d", open, silent, most)
			}
			if err := follower.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if n, err := follower.Read(make([]byte, 1)); n > 0 || !isTimeout(err) {
				t.Errorf("the follower is sent %d bytes, %v; want nothing, and an open connection", n, err)
			}
		})
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // It is what net.Conn returns.
	return ok && timeout.Timeout()
}

// TestNoRoomForCallers checks that a connection is closed at once when all others are being
// answered, and that there is room again after one has gone.
func TestNoRoomForCallers(t *testing.T) {
	t.Parallel()
	const most = 3
	s := serveCallers(t, most)
	var followers []net.Conn
	for range most {
		follower := s.dial("GET /follow HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := bufio.NewReader(follower).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		followers = append(followers, follower)
	}
	if got := s.ask(); got == "hello" {
		t.Error("one caller more than the limit is answered")
	}
	if err := followers[0].Close(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); s.ask() != "hello"; {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("there is no room after a caller has gone")
		}
	}
}
